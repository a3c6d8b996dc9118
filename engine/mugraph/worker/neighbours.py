"""Whether anything that a file imports from around it has changed: its own text does not say all of what it does."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

_log = logging.getLogger("mugraph.worker")

_MOST = 200
"""Files looked at; beyond them a change is not noticed."""


def fingerprint(path: Path, text: str) -> str:
    """Of the Python files that the text imports from its folder or its package, and those they import: their paths,
    sizes and times."""
    seen: dict[Path, str] = {}
    waiting = list(_imported(path, text))
    while waiting and len(seen) < _MOST:
        file = waiting.pop()
        if file in seen or file == path:
            continue
        try:
            stat = file.stat()
            seen[file] = f"{stat.st_mtime_ns} {stat.st_size}"
            waiting += _imported(file, file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            _log.info("%s, which is imported, cannot be read: %s", file, error)
            seen.setdefault(file, "unreadable")
    return sha256(repr(sorted((str(file), state) for file, state in seen.items())).encode()).hexdigest()


def _imported(path: Path, text: str) -> Iterator[Path]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # tracing says so of the file itself
        _log.debug("what %s imports is not known: %s", path, error)
        return
    top = path.parent
    while (top / "__init__.py").exists() and top.parent != top:
        top = top.parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(top, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = top if node.level == 0 else _above(path.parent, node.level - 1)
            parts = node.module.split(".") if node.module else []
            yield from _files(base, parts)
            for alias in node.names:
                yield from _files(base, [*parts, alias.name])


def _above(folder: Path, levels: int) -> Path:
    for _ in range(levels):
        folder = folder.parent
    return folder


def _files(folder: Path, parts: list[str]) -> Iterator[Path]:
    """The module and the packages it lies in, as far as they are files here."""
    for part in parts:
        if (module := folder / f"{part}.py").is_file():
            yield module
        folder = folder / part
        if (package := folder / "__init__.py").is_file():
            yield package

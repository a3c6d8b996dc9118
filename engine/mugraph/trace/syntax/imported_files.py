"""The files around a file that it imports, by its text alone: those of its folder or its package."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

from mugraph.trace.syntax.package import top_of

_log = logging.getLogger("mugraph.trace")


def imported_files(path: Path, text: str) -> Iterator[Path]:
    """None where the text is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # tracing says so of the file itself
        _log.debug("what %s imports is not known: %s", path, error)
        return
    top = top_of(path)
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

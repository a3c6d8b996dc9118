"""Files of a project that import another file and say shapes: their runs say how its functions are called."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.trace.syntax.imported_files import imported_files
from mugraph.trace.syntax.package import top_of
from mugraph.trace.syntax.source import read_source

_log = logging.getLogger("mugraph.trace")

_ROOTS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_SKIPPED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__", "build", "dist", "venv", "env"})
_MOST_FILES, _MOST_FOLDERS = 2000, 500
_LONGEST = 1_000_000
"""Bytes of a file that is read."""
_SAYS_SHAPES = re.compile(r"#\s*mugraph:|\bjaxtyping\b|\bdef\s+get_inputs\b")


@dataclass(frozen=True)
class Callers:
    """Files that are run to see how they call another one: in their order, as far as they are needed. each: all"""

    paths: tuple[Path, ...] = ()
    each: bool = False


def callers_of(path: Path) -> list[Path]:
    """The nearest first: those that import the file before those that import these; of the same distance, those of its
    folder first, tests last. Files that say no shapes are passed through."""
    path = path.absolute()
    texts = _texts(path)
    importers = _importers(
        [other for other, text in texts.items() if other != path and _SAYS_SHAPES.search(text)], texts
    )
    found: dict[Path, None] = {}
    level, seen = [path], {path}
    while level:
        level = sorted(
            {other for one in level for other in importers.get(one, ()) if other not in seen},
            key=lambda other: (other.name.startswith("test"), other.parent != path.parent, str(other)),
        )
        seen.update(level)
        found |= dict.fromkeys(other for other in level if _SAYS_SHAPES.search(texts[other]))
    return list(found)


def _importers(first: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, Sequence[Path]]:
    """File -> those that import it, among what these files lead to. Each is parsed once: a project may have thousands
    of files, of which none says shapes."""
    found: dict[Path, list[Path]] = {}
    left, seen = list(first), set(first)
    while left:
        one = left.pop()
        if "import" not in texts[one]:
            continue
        for other in imported_files(one, texts[one]):
            found.setdefault(other, []).append(one)
            if other in texts and other not in seen:
                seen.add(other)
                left.append(other)
    return found


def _texts(path: Path) -> Mapping[Path, str]:
    """Of the project's Python files, kernel modules apart."""
    texts: dict[Path, str] = {}
    folders = 0
    for root, inner, names in os.walk(_project(path)):
        inner[:] = sorted(name for name in inner if name not in _SKIPPED and not name.startswith("."))
        folders += 1
        for name in sorted(names):
            if not name.endswith(".py") or name.endswith("_mugraph.py") or name.startswith("mugraph_runtime_"):
                continue
            file = Path(root, name)
            try:
                if file.stat().st_size <= _LONGEST:
                    texts[file] = read_source(file)
            except (OSError, UnicodeDecodeError, SyntaxError) as error:
                _log.debug("%s cannot be read: %s", file, error)
        if folders >= _MOST_FOLDERS or len(texts) >= _MOST_FILES:
            _log.info("not all files around %s were looked at", path)
            break
    return texts


def _project(path: Path) -> Path:
    """The nearest folder around the file that looks like a project's; else that which its imports start from."""
    home = Path.home()
    for folder in path.parents:
        if folder == home or folder.parent == folder:
            break
        if any((folder / name).exists() for name in _ROOTS):
            return folder
    return top_of(path)

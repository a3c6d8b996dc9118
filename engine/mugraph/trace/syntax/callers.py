"""Files of a project that import another file and say shapes: their runs say how its functions are called."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
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
    found: dict[Path, None] = {}
    level, seen = [path], {path}
    while level:
        importers = sorted(
            {other for one in level for other in _importers(one, texts) if other not in seen},
            key=lambda other: (other.name.startswith("test"), other.parent != path.parent, str(other)),
        )
        seen.update(importers)
        found |= dict.fromkeys(other for other in importers if _SAYS_SHAPES.search(texts[other]))
        level = importers
    return list(found)


def _importers(path: Path, texts: Mapping[Path, str]) -> Iterator[Path]:
    name = path.parent.name if path.stem == "__init__" else path.stem
    word = re.compile(rf"\b{re.escape(name)}\b")
    for other, text in texts.items():
        if other != path and "import" in text and word.search(text) and path in imported_files(other, text):
            yield other


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

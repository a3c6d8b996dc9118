"""The name by which a file is imported, and the folder that its imports start from."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

from mugraph.trace.syntax.source import read_source

_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files of the folder that a project's packages lie in."""

_log = logging.getLogger("mugraph.trace")


def package_of(path: Path, module: str | None = None) -> tuple[Path, str, str | None]:
    """The folder that imports start from, the module's dotted name, and its package (None at the top).

    module: the name by which the user's program has imported the file, where that is known
    """
    is_package = path.stem == "__init__"
    names = [*_packages(path), *([] if is_package else [path.stem])]
    top = path.parents[len(names) if is_package else len(names) - 1]
    seen = module.split(".") if module is not None else []
    if seen[-1:] == [path.parent.name if is_package else path.stem]:
        lies = path.parent.parts if is_package else (*path.parent.parts, path.stem)
        names = seen
        if list(lies[-len(seen) :]) == seen:
            top = path.parents[len(seen) if is_package else len(seen) - 1]
    inside = names if is_package else names[:-1]
    return top, ".".join(names), ".".join(inside) or None


def top_of(path: Path) -> Path:
    """The folder that imports of the file's package start from."""
    return path.parents[len(_packages(path))]


def _packages(path: Path) -> list[str]:
    """The packages that the file lies in, from the outermost.

    Some projects have an `__init__.py` beside their `pyproject.toml`. What lies in the folders below is imported
    without the project's name, unless the file itself climbs to it (`from ..common import x`).
    """
    names: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists() and folder.name.isidentifier() and folder.parent != folder:
        if names and any((folder / one).exists() for one in _PROJECT) and _climbs(path) <= len(names):
            break
        names.insert(0, folder.name)
        folder = folder.parent
    return names


def _climbs(path: Path) -> int:
    """The most dots of the file's relative imports."""
    try:
        tree = ast.parse(read_source(path))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:  # tracing says so of the file
        _log.debug("what %s imports is not known: %s", path, error)
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)

"""The import of the kernel module in the user's file: how it is spelled, and where it goes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mugraph.edit.source.text import SourceFile

_ABOVE = 4
"""Folders, the file's own counted, in which files are looked at that import it."""


def import_statement(tree: ast.Module, path: Path, module_name: str, alias: str) -> str:
    """The statement, each line ended, that finds a module in the file's own folder however the file itself is run.

    A file that imports its neighbours shows how: relatively, or by the package's full name. Otherwise a folder that is
    a package gets a relative import (with an absolute one for a file that is also run as a script), any other folder
    an absolute one. A folder is also a package where a file above it says so: `from folder.file import name`.
    """
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    absolute, relative = f"import {module_name} as {alias}\n", f"from . import {module_name} as {alias}\n"
    if any(isinstance(node, ast.ImportFrom) and node.level for node in imports):
        return relative
    if package := _package_of_neighbours(imports, path.parent):
        return f"from {package} import {module_name} as {alias}\n"
    is_package = (path.parent / "__init__.py").exists()
    if not is_package and not _is_imported_from_above(path):
        return absolute
    if not is_package or _is_script(tree) or _is_on_the_path(path):
        return f"try:\n    {relative}except ImportError:  # run as a script\n    {absolute}"
    return relative


def _is_imported_from_above(path: Path) -> bool:
    """Whether a file in a folder above imports this one as a part of its folder, which needs no `__init__.py`:
    `from modules.layers import Block`, `from package.modules.layers import Block`, `from .modules import layers`."""
    folder, name = re.escape(path.parent.name), re.escape(path.stem)
    within = rf"\.*(?:\w+\.)*{folder}"
    says = re.compile(
        rf"^\s*(?:(?:from|import)\s+{within}\.{name}\b|from\s+{within}\s+import\b.*\b{name}\b)", re.MULTILINE
    )
    above = (one for parent in path.parents[1:_ABOVE] for one in parent.glob("*.py") if one.is_file())
    return any(says.search(one.read_text(errors="replace")) for one in above)


def _is_on_the_path(path: Path) -> bool:
    """Whether files of the folder import each other without its name (`from update import Block`), although it is a
    package: programs put the folder on the path."""
    files = [one for one in path.parent.glob("*.py") if one.stem != "__init__" and one.is_file()]
    names = "|".join(re.escape(one.stem) for one in files)
    bare = re.compile(rf"^\s*(?:from|import)\s+({names})\b(?!\.)", re.MULTILINE)
    for one in files:
        imported = set(bare.findall(one.read_text(errors="replace")))
        if path.stem in imported or (one == path and imported):
            return True
    return False


def _package_of_neighbours(imports: Sequence[ast.Import | ast.ImportFrom], folder: Path) -> str | None:
    """The dotted name by which the file imports modules of its own folder ("models.layers"), if it does so."""
    for node in imports:
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for module in modules:
            parts = module.split(".")
            for length in range(1, len(parts)):
                package = parts[:length]
                neighbour = folder / parts[length]
                there = neighbour.with_suffix(".py").exists() or neighbour.is_dir()
                if list(folder.parts[-length:]) == package and there:
                    return ".".join(package)
    return None


def _is_script(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
        for node in tree.body
    )


def import_offset(tree: ast.Module, file: SourceFile, text: str = "", folder: Path | None = None) -> int:
    """Offset of the line where an import goes, a line of its own: beside its like, in their order, if the file's top
    has such; else after the leading imports (docstring, `from __future__` and all).

    Without any import: after the docstring, else before the first statement's line, below the comments at the top.

    text:   the import
    folder: the file's own
    """
    if (beside := _beside_its_like(tree, file, text, folder)) is not None:
        return beside
    body = tree.body
    count = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
    while count < len(body) and isinstance(body[count], (ast.Import, ast.ImportFrom)):
        count += 1
    if count == 0:
        if not body:
            return len(file.text)
        first = body[0]
        decorated = isinstance(first, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
        decorators = first.decorator_list if decorated else []
        return file.starts[min([first.lineno, *(decorator.lineno for decorator in decorators)]) - 1]
    last = body[count - 1].end_lineno or body[count - 1].lineno
    for node in body[count:]:  # `import a; b = [` goes on below
        if node.lineno > last:
            break
        last = max(last, node.end_lineno or node.lineno)
    return file.next_line(last - 1)


def _beside_its_like(tree: ast.Module, file: SourceFile, text: str, folder: Path | None) -> int | None:
    """Where the file imports its neighbours before its first function or class: before the first that comes after ours
    in the order that import sorters keep, or after the last."""
    try:
        (own,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(own, (ast.Import, ast.ImportFrom)) or folder is None:
        return None
    alike: list[ast.Import | ast.ImportFrom] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            break
        if isinstance(node, (ast.Import, ast.ImportFrom)) and _of_neighbours(node, own, folder):
            alike.append(node)
    if not alike:
        return None
    alone = Counter(node.lineno for node in tree.body)
    for node in alike:
        if _order(node) > _order(own) and alone[node.lineno] == 1:
            return file.starts[node.lineno - 1]
    lines = [node.end_lineno or node.lineno for node in tree.body if node.lineno <= (alike[-1].end_lineno or 0)]
    return file.next_line(max(lines) - 1)


def _of_neighbours(node: ast.Import | ast.ImportFrom, own: ast.Import | ast.ImportFrom, folder: Path) -> bool:
    """Whether an import is of the file's own folder, and spelled as ours is."""
    if isinstance(node, ast.ImportFrom) and isinstance(own, ast.ImportFrom):
        package = (own.module or "").split(".")
        return node.level > 0 if own.level else (node.module or "").split(".")[: len(package)] == package
    if isinstance(own, ast.Import):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if isinstance(node, ast.ImportFrom) and node.level:
            return False
        tops = [name.partition(".")[0] for name in names]
        return all((folder / f"{top}.py").exists() or (folder / top / "__init__.py").exists() for top in tops)
    return False


def _order(node: ast.Import | ast.ImportFrom) -> tuple[bool, int, str, str]:
    """`import a` before `from a`; of relative ones the farthest first."""
    if isinstance(node, ast.Import):
        return False, 0, node.names[0].name.lower(), ""
    return True, -node.level, (node.module or "").lower(), node.names[0].name.lower()

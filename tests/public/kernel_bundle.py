"""A kernel of a public project with all that it names, as one file that stands alone.

Functions, constants and imports are taken as they are, from whichever file of the project has them. What is left out or
put in the place of something is said by the project's `Stubs`: decorators that cache launches, queries of the device.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HEAD = "import math\n\nimport torch\nimport triton\nimport triton.language as tl\n"
_KNOWN = frozenset({*dir(builtins), "math", "torch", "triton", "tl"})


class NotFound(Exception):
    """Something that a kernel names is not in the project."""


@dataclass(frozen=True)
class Stubs:
    """
    package: name -> its folder
    texts:   name -> Python that is put in its place
    dropped: decorators that change nothing of what is computed
    autotune: decorators that are triton.autotune
    replaced: regular expression -> what stands for its matches in the text of a definition
    """

    package: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    dropped: frozenset[str] = frozenset()
    autotune: frozenset[str] = frozenset()
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


class Bundle:
    """Of one kernel. clone: of the project"""

    def __init__(self, clone: Path, stubs: Stubs) -> None:
        self._clone, self._stubs = clone, stubs
        self._parts: list[str] = []
        self._done: dict[str, str] = {}

    def text(self, file: str, launcher: str) -> str:
        """With the launcher's text after what it names in the file."""
        own = ast.parse(launcher)
        defined = {node.name for node in own.body if isinstance(node, ast.FunctionDef)}
        for name in sorted(set(_names(own)) - defined - _KNOWN):
            self._take(self._clone / file, name)
        return "\n\n".join([HEAD, *self._parts, launcher])

    def _take(self, path: Path, name: str) -> None:
        if name in self._stubs.texts:
            self._add(name, self._stubs.texts[name], f"stub {name}")
            return
        found = _binding(_tree(path).body, name)
        if found is None:
            raise NotFound(f"{name} is not in {path.name}")
        if isinstance(found, ast.ImportFrom | ast.Import):
            self._import(path, found, name)
            return
        origin = f"{path}:{found.lineno}"
        if self._done.get(name) == origin:
            return
        if name in self._done:
            raise NotFound(f"{name} means two things")
        self._done[name] = origin
        if isinstance(found, ast.FunctionDef | ast.ClassDef):
            found = self._replaced(found)
            for node in ast.walk(found):
                if isinstance(node, ast.FunctionDef):
                    node.decorator_list = [one for one in map(self._decorator, node.decorator_list) if one is not None]
        for used in sorted(set(_names(found)) - _KNOWN - {name}):
            if used not in self._done and (used in self._stubs.texts or _binding(_tree(path).body, used) is not None):
                self._take(path, used)
        before = _earlier(_tree(path).body, name) if isinstance(found, ast.Assign) else []
        self._parts += [ast.unparse(self._replaced(one)) for one in (*before, found)]

    def _replaced(self, node: ast.stmt) -> ast.stmt:
        text = ast.unparse(node)
        for pattern, new in self._stubs.replaced.items():
            text = re.sub(pattern, new, text)
        return ast.parse(text).body[0]

    def _decorator(self, node: ast.expr) -> ast.expr | None:
        called = node.func if isinstance(node, ast.Call) else node
        name = ast.unparse(called)
        if name in self._stubs.dropped:
            return None
        if isinstance(node, ast.Call):
            kept = ("configs", "key", "values")
            keywords = [one for one in node.keywords if one.arg in kept]
            if name in self._stubs.autotune or name == "triton.autotune":
                return ast.Call(ast.parse("triton.autotune", mode="eval").body, node.args, keywords)
        return node

    def _import(self, path: Path, node: ast.ImportFrom | ast.Import, name: str) -> None:
        alias = next(one for one in node.names if (one.asname or one.name.split(".")[0]) == name)
        if isinstance(node, ast.Import):
            self._add(name, ast.unparse(ast.Import([alias])), f"import {alias.name}")
            return
        home = self._file(path, node)
        if home == path:
            raise NotFound(f"{name} is imported by {path.name} from itself")
        if home is None:
            self._add(name, ast.unparse(ast.ImportFrom(node.module, [alias], 0)), f"{node.module}.{alias.name}")
            return
        self._take(home, alias.name)
        if alias.asname and alias.asname != alias.name:
            self._add(alias.asname, f"{alias.asname} = {alias.name}", f"{home}:{alias.name}")

    def _file(self, path: Path, node: ast.ImportFrom) -> Path | None:
        """Of a module of the project."""
        if node.level:
            folder = path.parents[node.level - 1]
        else:
            first = (node.module or "").split(".")[0]
            if first not in self._stubs.package:
                return None
            folder = (self._clone / self._stubs.package[first]).parent
        for part in (node.module or "").split("."):
            folder = folder / part if part else folder
        for found in (folder.with_suffix(".py"), folder / "__init__.py"):
            if found.is_file():
                return found
        raise NotFound(f"{node.module} is not in the project")

    def _add(self, name: str, text: str, origin: str) -> None:
        if name not in self._done:
            self._done[name] = origin
            self._parts.append(text)


def _names(node: ast.AST) -> Iterator[str]:
    """Of the module, that its text asks for."""
    yield from _globals(symtable.symtable(ast.unparse(node), "part", "exec"))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals(inner)


def _binding(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """The last statement that binds the name; of branches the one without a condition, `else`."""
    found: ast.stmt | None = None
    for node in body:
        match node:
            case ast.FunctionDef() | ast.ClassDef() if node.name == name:
                found = node
            case ast.Assign(targets) if any(n in (name,) for t in targets for n in _targets(t)):
                found = node
            case ast.AnnAssign(ast.Name(id=own)) if own == name:
                found = node
            case ast.Import(names) | ast.ImportFrom(_, names):
                if any((one.asname or one.name.split(".")[0]) == name for one in names):
                    found = node
            case ast.If(_, first, second):
                found = _binding(second, name) or _binding(first, name) or found
            case ast.Try(first):
                found = _binding(first, name) or found
            case _:
                pass
    return found


def _earlier(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """What the name was before it was decorated: `name = triton.jit(name)`."""
    found = [one for one in body if _binding([one], name) is one]
    return found[:-1] if any(isinstance(one, ast.FunctionDef) for one in found[:-1]) else []


def _targets(node: ast.expr) -> Iterator[str]:
    return (one.id for one in ast.walk(node) if isinstance(one, ast.Name))

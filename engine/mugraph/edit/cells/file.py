"""A file that says what a function or a class of a session consists of: its definition, those of the session's
functions and classes that it reaches by name, and what these import.

The session's other code, which trains and loads, is not in it, and does not run again. Data is not in it either, but
for numbers, texts and the like: a call's picture has what the session's names hold.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import cast

from mugraph.edit.cells.cell import (
    Statement,
    bound_by,
    folder_of_cells,
    own_functions,
    statement_defining,
    statement_of,
)
from mugraph.edit.source.files import write_whole
from mugraph.ir.content import digest
from mugraph.recording.inside.mugraph_recorder.places import NoPlace, place

_ANNOTATIONS = __future__.annotations.compiler_flag
_HEAD = "# What these functions and classes of an interactive session consist of, as mugraph traces them.\n"


def written(name: str, roots: Iterable[object], space: Mapping[str, object]) -> Path:
    """name: what it is for. roots: functions and classes of the session. space: the session's names. Raises TypeError,
    one sentence."""
    gathered = _Gathered(space)
    text = gathered.text(roots)
    path = folder_of_cells() / f"{name.lower()}_{digest('cells', text, length=16)}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    _imports[path] = {bound: statement.imported for bound, statement in gathered.definitions.items()}
    return path


_imports: dict[Path, Mapping[str, tuple[str, ...]]] = {}


def imports_of(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Definition of a file that was written -> names that its cell imports."""
    return _imports.get(path, {})


def defined_again(kind: type, space: Mapping[str, object]) -> bool:
    """Whether the session's class of that name is another one by now."""
    found: object = space.get(kind.__qualname__.partition(".")[0])
    for name in kind.__qualname__.split(".")[1:]:
        found = vars(found).get(name) if isinstance(found, type) else None
    return found is not kind


@dataclass
class _Gathered:
    """imports: lines. data: name -> what it is. definitions: by the name that the statement binds"""

    space: Mapping[str, object]
    imports: dict[str, None] = field(default_factory=dict[str, None])
    data: dict[str, str] = field(default_factory=dict[str, str])
    definitions: dict[str, Statement] = field(default_factory=dict[str, Statement])

    def text(self, roots: Iterable[object]) -> str:
        for root in roots:
            self._define(root)
        future = any(one.future & _ANNOTATIONS for one in self.definitions.values())
        parts = [_HEAD, "from __future__ import annotations\n" if future else "", *sorted(self.imports)]
        parts += [f"{name} = {said}\n" for name, said in sorted(self.data.items())]
        order: dict[str, None] = {}
        for name in sorted(self.definitions):
            self._before(name, order, set())
        return "\n\n".join(["".join(parts), *(self.definitions[name].text for name in order)])

    def _define(self, value: object, called: str = "") -> str:
        """The name that it is defined by. called: that it is reached by. Raises TypeError."""
        name = str(getattr(value, "__qualname__", "")).partition(".")[0]
        is_inside = "<locals>" in str(getattr(value, "__qualname__", ""))
        statement = statement_defining(called) if is_inside and called else self._statement(value)
        name = called if is_inside and called else name
        if statement is None:
            raise TypeError(
                f"the source of {name} is not there: of what was typed into Python itself or made by exec, nothing is "
                "kept; define it in a file, a notebook or IPython"
            )
        bound = bound_by(statement.node)
        if bound is None:
            raise TypeError(f"{name} is defined inside another statement; move it to the level of its cell")
        if bound not in self.definitions:
            self.definitions[bound] = statement
            for read in _names(statement.node):
                if read in self.space and read not in self.definitions:
                    self._reach(read, self.space[read])
        return bound

    def _statement(self, value: object) -> Statement | None:
        if isinstance(value, FunctionType):
            return statement_of(value)
        if not isinstance(value, type):
            return None
        functions = list(own_functions(value))
        if not functions:
            return statement_defining(value.__qualname__.partition(".")[0])
        found = [statement_of(function) for function in functions if not _is_made(function)]
        if not found:
            return statement_defining(value.__qualname__.partition(".")[0])
        if len({one.text if one is not None else "" for one in found}) > 1:
            raise TypeError(f"a method of {value.__qualname__} is not what its class says")
        return found[0]

    def _reach(self, name: str, value: object) -> None:
        while isinstance(value, FunctionType) and "__wrapped__" in vars(value) and value.__module__ == "__main__":
            value = vars(value)["__wrapped__"]
        if isinstance(value, ModuleType):
            self.imports[f"import {value.__name__} as {name}\n"] = None
        elif isinstance(value, FunctionType | type) and value.__module__ == "__main__":
            bound = self._define(value, name)
            if name not in self.definitions:
                inner = value.__qualname__.partition(".")[2] if isinstance(value, type) else ""
                self.definitions[name] = _alias(name, f"{bound}.{inner}" if inner else bound)
        elif (said := _plain(value)) is not None:
            self.data[name] = said
        elif isinstance(value, FunctionType | type) or (callable(value) and hasattr(value, "__name__")):
            self._imported(name, value)
        else:
            kind = type(value)
            if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device", "layout", "memory_format"):
                self.imports["import torch\n"] = None
                self.data[name] = f"torch.{value!r}" if kind.__name__ == "device" else repr(value)
            else:
                self.data[name] = "None"

    def _imported(self, name: str, value: object) -> None:
        try:
            found = place(value)
        except NoPlace:
            self.data[name] = "None"
            return
        module, dotted = str(found["module"]), str(found["name"])
        first = dotted.partition(".")[0]
        if module == "__main__":
            self.data[name] = "None"
        elif first == dotted:
            self.imports[f"from {module} import {first} as {name}\n"] = None
        else:
            self.imports[f"from {module} import {first} as _{first}_of_{name}\n"] = None
            self.data[name] = f"_{first}_of_{name}{dotted[len(first) :]}"

    def _before(self, name: str, order: dict[str, None], begun: set[str]) -> None:
        """Puts what a definition reads when it is made before it."""
        if name in order or name in begun:
            return
        begun.add(name)
        statement = self.definitions[name]
        for read in _names(statement.node, made=True):
            if read in self.definitions and read != name:
                self._before(read, order, begun)
        order[name] = None


def _alias(name: str, other: str) -> Statement:
    text = f"{name} = {other}\n"
    return Statement(ast.parse(text).body[0], text, 0)


def _is_made(function: FunctionType) -> bool:
    """By Python itself, as the methods of a dataclass."""
    return function.__code__.co_filename == "<string>"


def _names(node: ast.AST, *, made: bool = False) -> Iterator[str]:
    """Names that are read; made: as it is made, and not when it is called."""
    if made and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        parts: list[ast.AST] = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
        if not isinstance(node, ast.Lambda):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            parts += [*node.decorator_list, *(one.annotation for one in every if one is not None and one.annotation)]
            parts += [node.returns] if node.returns is not None else []
        for part in parts:
            yield from _names(part, made=True)
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _names(child, made=made)


def _plain(value: object) -> str | None:
    """What is the same when it is read again: numbers, texts, and tuples of them."""
    if type(value) is tuple:
        items = [_plain(one) for one in cast("tuple[object, ...]", value)]
        listed = "".join(f"{one}, " for one in items)
        return None if None in items else f"({listed})"
    if type(value) is float and not abs(value) < float("inf"):
        return f"float({str(value)!r})"
    return repr(value) if value is None or type(value) in (bool, int, float, str, bytes) else None

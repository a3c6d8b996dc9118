"""The source of what was typed into a notebook or an interactive session: Python's `linecache` has it, by the name that
the code was compiled under. IPython keeps each cell there, with its magics turned into Python."""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import cast

from mugraph.store.place import cache_folder
from mugraph.trace.syntax.definition_text import imported_names

EDITED = " (edited by mugraph)"
"""What the name of a file ends with whose text is not on the disk."""
_FLAGS = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def folder_of_cells() -> Path:
    """Where the files lie that cells are traced as."""
    return cache_folder() / "cells"


def is_typed(function: FunctionType) -> bool:
    """Whether it was defined in the session itself, in no file."""
    name, session = function.__code__.co_filename, sys.modules.get("__main__")
    if session is None or vars(session) is not function.__globals__:
        return False
    return Path(name.removesuffix(EDITED)).parent == folder_of_cells() or not os.path.exists(name)


@dataclass(frozen=True)
class Statement:
    """One at a cell's top level. text: with its decorators, as it stands. future: flags that it was compiled with.
    imported: names that its cell imports, which the compiler treats in a way of their own"""

    node: ast.stmt
    text: str
    future: int
    imported: tuple[str, ...] = ()


def statement_of(function: FunctionType) -> Statement | None:
    """That a function, or the class around it, was defined in; None where its source is not there, or is not what it
    runs."""
    code = function.__code__
    name = code.co_filename
    at_place = not name.endswith(EDITED)
    text = _text(name.removesuffix(EDITED))
    for statement in _statements(text, code.co_flags & _FLAGS) if text is not None else ():
        first, last = _lines(statement.node)
        if (not at_place or first <= code.co_firstlineno <= last) and _defines(statement, code, at_place):
            return statement
    if text is None and at_place:  # a magic has run it: its code says nothing of the cell
        for cell in _cells():
            for statement in _statements(cell, code.co_flags & _FLAGS):
                if bound_by(statement.node) == code.co_qualname.partition(".")[0] and _defines(statement, code, True):
                    return statement
    return None


def _defines(statement: Statement, code: CodeType, exactly: bool) -> bool:
    """exactly: and it is what runs"""
    cell = "".join(f"import {name}\n" for name in statement.imported) + statement.text
    found = codes_of(compile(cell, "", "exec", flags=statement.future, dont_inherit=True))
    there = found.get(code.co_qualname)
    return there is not None and (not exactly or is_same(there, code))


def _cells() -> Iterator[str]:
    """The texts of the session's cells, those first that ran last; of a cell whose magic runs it, what it runs."""
    for file in reversed(list(linecache.cache)):
        text = _text(file) if not os.path.exists(file) else None
        if text is None:
            continue
        yield text
        for one in _statements(text, 0) if "run_cell_magic" in text else ():
            match one.node:
                case ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), args=[*_, ast.Constant(str(body))])):
                    yield body
                case _:
                    pass


def statement_defining(name: str) -> Statement | None:
    """Of a class that has no function of its own, or a function that a decorator has made: what all cells that define
    the name say, if that is one thing."""
    found: dict[str, Statement] = {}
    for cell in _cells():
        for statement in _statements(cell, 0) if name in cell else ():
            if bound_by(statement.node) == name:
                found[statement.text] = statement
    return next(iter(found.values())) if len(found) == 1 else None


def bound_by(node: ast.stmt) -> str | None:
    """The name that a definition binds; None where the statement is none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def codes_of(module: CodeType) -> dict[str, CodeType]:
    """The codes of functions by their qualified names; of several with one name, the last, which is what counts."""
    found: dict[str, CodeType] = {}

    def inside(code: CodeType) -> Iterator[CodeType]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield inner
                yield from inside(inner)

    for code in inside(module):
        found[code.co_qualname] = code
    return found


def is_same(one: CodeType, other: CodeType) -> bool:
    """Wherever they stand."""
    return _placeless(one) == _placeless(other)


def is_defined_in(function: FunctionType, text: str) -> bool:
    """Whether the text has its definition as it was typed."""
    statement = statement_of(function)
    return statement is not None and statement.text in text


def _placeless(code: CodeType) -> CodeType:
    inner = tuple(_placeless(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_filename="", co_consts=inner)


def _text(name: str) -> str | None:
    if Path(name).parent == folder_of_cells():
        try:
            return Path(name).read_text(encoding="utf-8")
        except OSError:
            return None
    lines = linecache.getlines(name)
    return "".join(lines) if lines else None


def _statements(text: str, future: int) -> Iterator[Statement]:
    try:
        tree = compile(text, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    lines, module = text.splitlines(keepends=True), cast(ast.Module, tree)
    imported = tuple(sorted(imported_names(module)))
    for node in module.body:
        first, last = _lines(node)
        yield Statement(node, "".join(lines[first - 1 : last]).rstrip() + "\n", future, imported)


def _lines(node: ast.stmt) -> tuple[int, int]:
    decorators = cast("list[ast.expr]", getattr(node, "decorator_list", []))
    return min([node.lineno, *(one.lineno for one in decorators)]), node.end_lineno or node.lineno


def own_functions(kind: type) -> Iterator[FunctionType]:
    """That its class statement has defined."""
    for raw in cast("Mapping[str, object]", vars(kind)).values():
        inner = getattr(raw, "__func__", None) or getattr(raw, "fget", None) or getattr(raw, "func", None) or raw
        while isinstance(inner, FunctionType) and "__wrapped__" in vars(inner):
            inner = vars(inner)["__wrapped__"]
        if isinstance(inner, FunctionType) and inner.__code__.co_qualname.startswith(f"{kind.__qualname__}."):
            yield inner

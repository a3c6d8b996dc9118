"""Each test that the user's file asks (`NAME_fits`) gets a first statement that has the watcher ask and count.

The function stays the one that the module defines: TorchScript reads its text from the file, dynamo passes the
statement by, and line numbers stay right. What the watcher asks is a copy of it beside it.
"""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from .read_sizes import read_sizes

ASKED = "__mugraph_asked__"
TRACED = "__mugraph_traced_here__"
_RECORD = "_REVERT"
_ANCHOR = re.compile(r"(\w+)\.(\w+)_fits\(")


class Question(NamedTuple):
    """words: what the user's file calls the things that it asks about: `input` of `kernels.norm_fits(self, input)`.
    sizes: names of the function that asks which are sizes of tensors."""

    words: tuple[str, ...] = ()
    sizes: frozenset[str] = frozenset()


Regions = Mapping[str, Question]
"""By name."""


def is_generated(data: bytes, path: str) -> Regions:
    """The regions of a generated kernel module; empty for another file. As `mugraph revert` knows one: by the
    record of the edit that is in it, and by the file beside it that the record names."""
    if f"\n{_RECORD} = {{".encode() not in data:
        return {}
    for node in ast.parse(data).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == _RECORD:
            return _regions(ast.literal_eval(node.value), path)
    return {}


def _regions(record: object, path: str) -> Regions:
    """Raises ValueError where it is no record."""
    try:
        found = cast("dict[str, Any]", record)
        edited = os.path.join(os.path.dirname(os.path.abspath(path)), found["file"])
        if not os.path.isfile(edited):
            return {}
        anchors = [(_ANCHOR.fullmatch(region["anchor"]), region.get("also", ())) for region in found["regions"]]
        names = [(one[1], name) for one, also in anchors if one is not None for name in (one[2], *also)]
    except (KeyError, TypeError):
        raise ValueError("no record") from None
    asked = _asked_in(edited)
    return {name: asked.get(f"{alias}.{name}_fits", Question()) for alias, name in names}


def _asked_in(path: str) -> dict[str, Question]:
    """By what is called."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, Question] = {}

    def visit(node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_fits"):
            sizes = read_sizes(function) if function is not None else frozenset[str]()
            found[ast.unparse(node.func)] = Question(tuple(map(ast.unparse, node.args)), sizes)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree, None)
    return found


def instrument(
    data: bytes, path: str, regions: Regions, register: Callable[[str, str, ast.Module, Question], int]
) -> ast.Module:
    """The module's tree with the statements. register: gives a region its slot, from the module's path, the region's
    name, the module's tree as it is in the file, and what the user's file calls the things asked about."""
    tree, plain = ast.parse(data, path), ast.parse(data, path)
    for name, question in regions.items():
        at = next(
            (
                n
                for n, node in enumerate(tree.body)
                if isinstance(node, ast.FunctionDef) and node.name == f"{name}_fits"
            ),
            None,
        )
        if at is None:
            continue
        function = tree.body[at]
        assert isinstance(function, ast.FunctionDef)
        original = copy.deepcopy(function)
        original.name = f"__mugraph_{function.name}__"
        _ask(function, register(path, name, plain, question), original.name)
        tree.body.insert(at, original)
    return tree


def _ask(function: ast.FunctionDef, slot: int, original: str) -> None:
    arguments = function.args
    given = ", ".join(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))
    text = f"if not {TRACED}(): return {ASKED}({slot}, {original}, ({given},))"
    [statement] = ast.parse(text).body
    at = 1 if ast.get_docstring(function, clean=False) is not None else 0
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = function.lineno
            node.col_offset = node.end_col_offset = function.col_offset
    function.body.insert(at, statement)

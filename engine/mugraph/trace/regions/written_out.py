"""Expressions with the numbers and words in their subscripts written out: `layers[i]` is `layers[0]` where `i` is 0.

Where a region is guarded by `i` being 0, both are the same object by that alone. The region of a loop's body is one for
several `i`, in each of which `layers[i]` is another item.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping

_MAY_VARY = re.compile(r"\[(?!\d+\]|'[^']*'\])|getattr\(")
"""A subscript that is no number and no word by itself, or an attribute of such a name."""
_CALLS = (ast.Call, ast.Attribute, ast.Subscript, ast.Lambda, ast.NamedExpr, ast.Await)


class _Attributes(ast.NodeTransformer):
    """`getattr(x, "y")` as `x.y`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [owner, ast.Constant(str(name))], []) if name.isidentifier():
                return ast.Attribute(owner, name, ast.Load())
            case _:
                return node


class WrittenOut:
    """names: what a region's guard compares with constants"""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = {name: value for name, value in names.items() if type(value) in (int, str)}
        self._known: dict[str, str] = {}

    def of(self, expression: str) -> str:
        if not self._names or not _MAY_VARY.search(expression):
            return expression
        if expression not in self._known:
            self._known[expression] = self._made(expression)
        return self._known[expression]

    def _made(self, expression: str) -> str:
        try:
            tree = ast.parse(expression, mode="eval")
        except SyntaxError:  # a condition's own spelling
            return expression
        for node in ast.walk(tree):
            match node:
                case ast.Subscript(slice=key) if (value := self._value(key)) is not None:
                    node.slice = ast.Constant(value)
                case ast.Call(ast.Name("getattr"), [_, key]) if (value := self._value(key)) is not None:
                    node.args[1] = ast.Constant(value)
                case _:
                    pass
        return ast.unparse(_Attributes().visit(tree))

    def _value(self, node: ast.expr) -> int | str | None:
        """What a subscript comes to; None where something else than the names decides."""
        if any(isinstance(part, _CALLS) for part in ast.walk(node)):
            return None
        read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if not read or not read <= self._names.keys():
            return None
        code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(node))), "<subscript>", "eval")
        try:
            value = eval(code, {"__builtins__": {}}, dict(self._names))
        except (ArithmeticError, TypeError, ValueError):  # the code itself has raised there
            return None
        return value if type(value) in (int, str) else None

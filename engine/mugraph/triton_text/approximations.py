"""Expressions that approximate a function by a polynomial: over the fields they are the function itself.

How near they come to it is for the float test to say.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import zip_longest
from typing import cast

from mugraph.ops.functions.unary import UNARY

_ARGUMENT = "__argument__"
_KNOWN = ("tanh",)


def known_form(node: ast.Call) -> tuple[str, ast.expr] | None:
    """The function's name and its argument, if the expression is one of those."""
    found = getattr(node, "_mugraph_form", False)
    if found is False:
        found = _matched(node)
        node._mugraph_form = found  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


def _matched(node: ast.Call) -> tuple[str, ast.expr] | None:
    for name in _KNOWN:
        bound: list[ast.expr] = []
        if _alike(_template(name), node, bound):
            return f"tl.{name}", bound[0]
    return None


@cache
def _template(name: str) -> ast.expr:
    return ast.parse(UNARY[name].triton.replace("{x}", _ARGUMENT), mode="eval").body


def _alike(template: ast.AST, node: ast.AST, bound: list[ast.expr]) -> bool:
    if isinstance(template, ast.Name) and template.id == _ARGUMENT and isinstance(node, ast.expr):
        if not bound:
            bound.append(node)
        return ast.dump(bound[0]) == ast.dump(node)
    if type(template) is not type(node):
        return False
    if isinstance(template, ast.Constant) and isinstance(node, ast.Constant):
        return template.value == node.value
    for field in template._fields:
        if field in ("ctx", "kind"):
            continue
        one, other = cast("tuple[object, object]", (getattr(template, field), getattr(node, field)))
        if isinstance(one, list):
            pairs = list(zip_longest(cast("list[ast.AST]", one), cast("list[ast.AST]", other)))
            if any(a is None or b is None or not _alike(a, b, bound) for a, b in pairs):
                return False
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            if not _alike(one, other, bound):
                return False
        elif one != other:
            return False
    return True

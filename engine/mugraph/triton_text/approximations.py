"""Expressions that approximate a function, or round: over the fields they are the function itself.

How near they come to it is for the float test to say.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import zip_longest
from typing import cast

from mugraph.ir.dtypes import READ
from mugraph.ir.mantissa import OF_BYTES, SINGLES, of_bits
from mugraph.ir.tf32 import ROUNDED
from mugraph.kinds import Kind
from mugraph.ops.functions.unary import UNARY

TO_TF32 = "mugraph.to_tf32"
_BY_BITS = {"float16": OF_BYTES, "float32": SINGLES}
_OF = [(kind, READ[dtype].torch, text) for kind, texts in _BY_BITS.items() for dtype, text in texts.items()]
NUMBERS_OF = {f"mugraph.{kind}_of_{read}": (kind, read) for kind, read, _ in _OF}
"""Functions that make numbers of bytes by their bits -> their type, and the one that these bytes have to have."""
ON_BYTES = {f"mugraph.{kind.name}_of_uint8": kind for kind in Kind if kind.of_byte}
"""Functions that make them of what an operator gives on bytes -> that operator."""
_ARGUMENT = "__argument_{}__"
_ARGUMENTS = {_ARGUMENT.format(number): number for number in range(2)}


def known_form(node: ast.Call) -> tuple[str, list[ast.expr]] | None:
    """The function's name and its arguments, if the expression is one of those."""
    found = getattr(node, "_mugraph_form", False)
    if found is False:
        found = _matched(node)
        node._mugraph_form = found  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


def _matched(node: ast.Call) -> tuple[str, list[ast.expr]] | None:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("where", "cast"):
        return None
    for name, template in _templates().items():
        bound: dict[int, ast.expr] = {}
        if _alike(template, node, bound):
            return name, [bound[number] for number in sorted(bound)]
    return None


@cache
def _templates() -> dict[str, ast.expr]:
    """By the name of the function: a rounding, numbers of bytes, tanh, and the kinds whose text is a choice."""
    first, second = (_ARGUMENT.format(number) for number in range(2))
    texts = {TO_TF32: ROUNDED.replace("{x}", first)}
    for name, kind in ON_BYTES.items():  # before bytes, which may be any expression
        texts[name] = of_bits(kind.of_byte.format(first, second))
    texts |= dict(zip(NUMBERS_OF, (text.replace("{x}", first) for *_, text in _OF), strict=True))
    texts |= {"tl.tanh": UNARY["tanh"].triton.replace("{x}", _ARGUMENT.format(0))}
    for kind in Kind:
        if kind.opaque is not None and kind.triton.startswith(("tl.where(", "tl.cast(")):
            names = [_ARGUMENT.format(number) for number in range(kind.arity)]
            texts[f"mugraph.{kind.name}"] = kind.triton.replace(":atom", "").format(*names)
    return {name: ast.parse(text, mode="eval").body for name, text in texts.items()}


def _alike(template: ast.AST, node: ast.AST, bound: dict[int, ast.expr]) -> bool:
    if isinstance(template, ast.Name) and template.id in _ARGUMENTS and isinstance(node, ast.expr):
        known = bound.setdefault(_ARGUMENTS[template.id], node)
        return ast.dump(known) == ast.dump(node)
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

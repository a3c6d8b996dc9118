"""Numbers that vary from call to call, as live-ins of a region: float32 tensors without dimensions, which the kernel
module makes where the region begins. `_number(lr / (1 - beta ** step), x)` is such a live-in's expression."""

from __future__ import annotations

import ast
from functools import lru_cache

NUMBER = "_number"
"""The kernel module's function that makes one: of a number, of a tensor on whose device it is wanted, and of whether
it is computed with beside numbers of 16 bits that have a small range."""


def number_expression(text: str, like: str, narrow: bool) -> str:
    return f"{NUMBER}({ast.unparse(ast.parse(text, mode='eval'))}, {like}{', True' if narrow else ''})"


@lru_cache(4096)
def number_in(expression: str) -> str | None:
    """The text of the number, as the user's code could have it; None for what is a tensor's expression."""
    if not expression.startswith(f"{NUMBER}("):
        return None
    match ast.parse(expression, mode="eval").body:
        case ast.Call(ast.Name(name), [number, *_], []) if name == NUMBER:
            return ast.unparse(number)
        case _:
            return None


def said(expression: str) -> str:
    """A live-in as a reader is told of it."""
    number = number_in(expression)
    return expression if number is None else f"the number {number.replace('_math.', 'math.')}, which may vary"


def called(expression: str) -> str:
    """What a live-in may be called after: of a number that is computed, nothing but that it is one."""
    number = number_in(expression)
    if number is None:
        return expression
    return number if number.replace(".", "").isidentifier() else "number"

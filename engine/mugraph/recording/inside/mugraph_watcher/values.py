"""Two values that a check has compared."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, cast

from .guards import Refusal


@dataclass(frozen=True)
class Compared:
    """left: what was looked at. range: the numbers that would have been right, in words; None for one value."""

    left: ast.expr
    actual: Any
    expected: Any
    range: str | None = None


class Words(str):
    """Of a value that has no literal: these stand in a sentence as they are."""


def compared(refusal: Refusal) -> Compared | None:
    """None where the check compares nothing, or holds where two things differ."""
    frame, node, truth = refusal.frame, refusal.node, refusal.truth
    match node:
        case ast.Compare(ast.Call(ast.Name("_spelled"), [read]) as left, [ast.Eq()], [right]) if not truth:
            return Compared(read, Words(frame.value(left)), None, frame.value(right))
        case ast.Compare(ast.Call(ast.Name("_spelled"), [read]) as left, [ast.In()], [right]) if not truth:
            return Compared(read, Words(frame.value(left)), None, " or ".join(frame.value(right)))
        case ast.Compare(left, [ast.Eq() | ast.Is()], [right]) if not truth:
            pass
        case ast.Compare(left, [ast.NotEq() | ast.IsNot()], [right]) if truth:
            pass
        case ast.Compare(left, [ast.In()], [right]) if not truth:
            return Compared(left, frame.value(left), frame.value(right), _one_of(frame.value(right)))
        case ast.Compare(left, [ast.NotIn()], [right]) if truth:
            return Compared(left, frame.value(left), frame.value(right), _one_of(frame.value(right)))
        case ast.Compare(low, [ast.LtE(), ast.LtE()], [middle, high]) if not truth:
            span = f"{frame.value(low)} to {frame.value(high)}"
            return Compared(middle, frame.value(middle), None, span)
        case ast.Compare(left, [ast.LtE() | ast.Lt() as op], [right]) if not truth:
            most = frame.value(right)
            return Compared(
                left, frame.value(left), None, f"{'up to' if isinstance(op, ast.LtE) else 'less than'} {most}"
            )
        case ast.Compare(left, [ast.GtE() | ast.Gt() as op], [right]) if not truth:
            least = frame.value(right)
            return Compared(
                left, frame.value(left), None, f"{least} and more" if isinstance(op, ast.GtE) else f"more than {least}"
            )
        case _:
            return None
    if isinstance(left, ast.Constant | ast.Tuple) and not isinstance(right, ast.Constant | ast.Tuple):
        left, right = right, left
    return Compared(left, frame.value(left), frame.value(right))


def _one_of(values: Any) -> str:
    several = type(values) in (tuple, list, set, frozenset)
    return " or ".join(short(one) for one in values) if several else short(values)


def short(value: Any) -> str:
    """A value in a sentence."""
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)
    kind = cast("type[object]", type(value))
    if kind is Words:
        return str(value)
    if kind in (tuple, list) and len(value) <= 8:
        items = [short(one) for one in cast("list[Any]", value)]
        if kind is list:
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' * (len(items) == 1)})"
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "layout", "Size"):
        return str(value).removeprefix("torch.")
    if isinstance(value, str):
        return repr(value if len(value) < 60 else f"{value[:57]}...")
    return a(type(value).__qualname__)


def a(name: str) -> str:
    """ "an int"."""
    return f"{'an' if name[:1] in tuple('aeiouAEIO') else 'a'} {name}"

"""Which loop nest runs a finished graph, by trying every tree of its loops (at most two).

A statement stands in the loops its operands vary in, an accumulator in the loop it closes as well, and whatever else
the tree puts around those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mugraph.ir.block import Loop


@dataclass(frozen=True, slots=True)
class Statement:
    """One operator, by loops. varies: its operands do in them; after: its operands are results of them; closes: the
    loop it accumulates over, "" for none."""

    varies: frozenset[str]
    after: frozenset[str]
    closes: str = ""


def nest(loops: tuple[str, ...], statements: Sequence[Statement]) -> tuple[Loop, ...] | None:
    """The tree, or None where none runs the graph or a loop has nothing to accumulate. Of two loops in a row that do
    not depend on each other, the one that sorts first comes first."""
    if {statement.closes for statement in statements} - {""} != set(loops):
        return None
    if len(loops) < 2:
        return tuple(Loop(axis) for axis in loops)
    a, b = sorted(loops)
    for first, second in ((a, b), (b, a)):
        if all(_runs_beside(first, second, statement) for statement in statements):
            return Loop(first), Loop(second)
        if all(_runs_inside(first, second, statement) for statement in statements):
            return (Loop(first, (Loop(second),)),)
    return None


def _runs_beside(first: str, second: str, statement: Statement) -> bool:
    """One loop after the other: nothing varies in both, and the first knows no result of the second."""
    if {first, second} <= statement.varies:
        return False
    return not (first in statement.varies and second in statement.after)


def _runs_inside(outer: str, inner: str, statement: Statement) -> bool:
    """One loop in the other: all of the inner one stands in the outer one, so it knows no result of that; and an
    accumulator of the inner loop varies in the outer one, or it would not stand there."""
    if inner in statement.varies and outer in statement.after:
        return False
    if statement.closes == outer and inner in statement.varies:
        return False
    return statement.closes != inner or outer in statement.varies

"""Functions that follow from the sign of their argument: relu(x) is x or 0, abs(x) is x or -x.

Each stays one operator of a graph. Verification may take it by the sign of its argument, or as a function of which only
one thing is known: it is never negative.
"""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.ops import Op

BY_SIGN = frozenset({"relu", "abs"})
"""`fn` of a UNARY."""
MAX = "max"
"""Stands for maxima of two values among the functions that are taken by sign: max(x, 0) is x where x is positive."""
ORDER = "order"
"""Stands for the order of real numbers, when maxima, relu and abs are computed by it."""


def has_maxima(*graphs: Iterable[Op]) -> bool:
    """Is a maximum in one of the graphs, or relu or abs, which are maxima too?"""
    return any(op.kind.chooses or (op.kind.is_function and op.fn in BY_SIGN) for graph in graphs for op in graph)


def taken_by_sign(*graphs: Iterable[Op]) -> frozenset[str]:
    """Functions in the graphs that signs decide; and MAX, if there is one or a maximum of two values."""
    ops = [op for graph in graphs for op in graph]
    found = {op.fn for op in ops if op.kind.is_function and op.fn in BY_SIGN}
    maxima = any(op.kind.chooses and op.kind.is_elementwise for op in ops)
    return frozenset(found | {MAX}) if found or maxima else frozenset()

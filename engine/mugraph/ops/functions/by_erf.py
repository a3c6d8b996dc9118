"""GELU as it is defined: gelu(x) = x (1 + erf(x / sqrt 2)) / 2. Of erf only one thing is known: it is odd.

GELU stays one operator of a graph. Verification may take it in this form, or as a function of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from mugraph.ir.ops import Op
from mugraph.ops.functions.through_exp import Numbers

V = TypeVar("V")

ERF, GELU = "erf", "gelu"
BY_ERF = frozenset({ERF, GELU})
"""`fn` of a UNARY."""

_ROOT_OF_A_HALF = 0.7071067811865476


def gelu_by_erf(x: V, numbers: Numbers[V], constant: Callable[[float], V]) -> V:
    inner = numbers.unary(ERF, numbers.mul(constant(_ROOT_OF_A_HALF), x))
    return numbers.mul(numbers.mul(constant(0.5), x), numbers.add(constant(1.0), inner))


def taken_by_erf(*graphs: Iterable[Op]) -> frozenset[str]:
    """Both functions, where one of them is in a graph."""
    ops = (op for graph in graphs for op in graph)
    return BY_ERF if any(op.kind.is_function and op.fn in BY_ERF for op in ops) else frozenset()

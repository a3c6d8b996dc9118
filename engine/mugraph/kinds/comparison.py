"""Comparisons: 1 where they hold, else 0; of what is not a number none holds."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _greater(a: Floats, b: Floats) -> Floats:
    return np.greater(a, b).astype(np.float64)


def _greater_equal(a: Floats, b: Floats) -> Floats:
    return np.greater_equal(a, b).astype(np.float64)


def _equal(a: Floats, b: Floats) -> Floats:
    return np.equal(a, b).astype(np.float64)


GREATER = Kind(
    "greater",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_greater, ("gt", "greater", "__gt__"), is_truth=True),
    shown="{0} > {1}",
    symbol=">",
    title="_above",
    stem="above",
    instructions=2,
    test_cost=4.0,
    triton="tl.where({0} > {1}, 1.0, 0.0)",
    constant="limit",
)

GREATER_EQUAL = Kind(
    "greater_equal",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_greater_equal, ("ge", "greater_equal", "__ge__"), is_truth=True),
    shown="{0} >= {1}",
    symbol="≥",
    title="_from",
    stem="from",
    instructions=2,
    test_cost=4.0,
    triton="tl.where({0} >= {1}, 1.0, 0.0)",
    constant="limit",
)

EQUAL = Kind(
    "equal",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_equal, ("eq", "__eq__"), is_truth=True),
    commutes=True,
    shown="{0} == {1}",
    symbol="=",
    title="_equal",
    stem="equal",
    instructions=2,
    test_cost=4.0,
    triton="tl.where({0} == {1}, 1.0, 0.0)",
    constant="limit",
)

"""1 where two values are equal, else 0; NaN equals nothing."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _equal(a: Floats, b: Floats) -> Floats:
    return np.equal(a, b).astype(np.float64)


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

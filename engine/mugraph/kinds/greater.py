"""1 where the first value is greater than the second, else 0; where one of them is NaN it is 0."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _greater(a: Floats, b: Floats) -> Floats:
    return np.greater(a, b).astype(np.float64)


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

"""What a condition leaves of a value: the value where the first operand is not zero, else zero, whatever is there."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _kept(where: Floats, value: Floats) -> Floats:
    return np.where(where != 0.0, value, 0.0)


KEPT = Kind(
    "kept",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_kept, (), reference="torch.where({0} != 0, {1}, torch.zeros_like({1}))", vanishes=True),
    shown="{1} where {0}",
    symbol="where",
    title="_kept",
    stem="kept",
    instructions=2,
    test_cost=4.0,
    triton="tl.where({0} != 0.0, {1}, 0.0)",
)

"""What a mask leaves of a logit: the value where the first operand is not zero, else minus infinity."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _seen(where: Floats, value: Floats) -> Floats:
    return np.where(where != 0.0, value, -np.inf)


SEEN = Kind(
    "seen",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_seen, (), reference="torch.where({0} != 0, {1}, torch.full_like({1}, float('-inf')))", hides=True),
    shown="{1} where {0}, else -inf",
    symbol="where",
    title="_seen",
    stem="seen",
    instructions=2,
    test_cost=4.0,
    triton='tl.where({0} != 0.0, {1}, float("-inf"))',
)

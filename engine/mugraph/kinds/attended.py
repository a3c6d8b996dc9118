"""What PyTorch's attention leaves of a logit under a mask of truth values: the logit where the first operand is not
zero, elsewhere the logit and minus infinity. That is no number where the logit is none, unlike what `seen` leaves; a
kernel may pass over it."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _attended(where: Floats, value: Floats) -> Floats:
    return np.where(where != 0.0, value, value - np.inf)


ATTENDED = Kind(
    "attended",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(
        _attended, (), reference="torch.where({0} != 0, {1}, {1} - float('inf'))", hides=True, passes_over=True
    ),
    shown="{1} where {0}, else -inf",
    symbol="where",
    title="_attended",
    stem="attended",
    instructions=2,
    test_cost=4.0,
    triton='tl.where({0} == 0.0, float("-inf"), {1})',
)

"""exp(-|x|), the tail of a softplus.

A softplus has no exponential that a search could move: over the fields it is a function of which nothing is known, so
that a path may have several of them (mish of mish), and one exponential besides (of a softplus, as in state-space
models; Mirage §5 has one on a path).
"""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _decay(x: Floats) -> Floats:
    return np.exp(-np.abs(x))


DECAY = Kind(
    "decay",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(_decay, (), reference="torch.exp(-torch.abs({0}))"),
    shown="exp(-|{0}|)",
    symbol="exp(-| |)",
    title="_decay",
    stem="decay",
    instructions=6,
    ulps=2,
    argument_ulps=2,
    test_cost=4.0,
    # The conversion changes nothing: it marks the text, which is read as this function (triton_text/approximations.py).
    triton="tl.cast(tl.exp(-tl.abs({0})), tl.float32)",
)

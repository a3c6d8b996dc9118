"""2 to the power of a value that no input is part of, as the slopes of ALiBi are powers of two of a head's place.

Its numbers are known, so it is no exponential that a softmax could be about: two of those on one path would leave the
Lax fragment. The text is a choice, by which the check of a kernel's text tells it from an exponential.
"""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Opaque

POWER_OF_TWO = Kind(
    "power_of_two",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.exp2, (), reference="torch.exp2({0})"),
    shown="2 ** {0}",
    symbol="2^",
    title="_power",
    stem="power",
    instructions=8,
    ulps=2,
    argument_ulps=1,
    test_cost=4.0,
    triton="tl.where({0:atom} == 0.0, 1.0, tl.exp2({0:atom}))",
)

"""The whole numbers around a value: the nearest one (of two that are as near the even one, as PyTorch and IEEE 754
have it), the next below, the next above, and the next towards zero."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Opaque

# From 2^23 to 2^24 a float32 has no digits after the point. A sum in that range rounds away all digits that a smaller
# number has, to the nearest and to even; beyond it all numbers are whole.
ROUND = Kind(
    "round",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.round, ("round",), jumps=True),
    shown="round({0})",
    symbol="round",
    title="_rounded",
    stem="rounded",
    instructions=5,
    test_cost=4.0,
    triton="tl.where(tl.abs({0}) < 8388608.0, tl.where({0:atom} < 0.0, ({0:atom} - 8388608.0) + 8388608.0, "
    "({0:atom} + 8388608.0) - 8388608.0), {0})",
)

FLOOR = Kind(
    "floor",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.floor, ("floor",), jumps=True),
    shown="floor({0})",
    symbol="floor",
    title="_floor",
    stem="floor",
    test_cost=4.0,
    triton="tl.floor({0})",
)

CEIL = Kind(
    "ceil",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.ceil, ("ceil",), jumps=True),
    shown="ceil({0})",
    symbol="ceil",
    title="_ceil",
    stem="ceiling",
    test_cost=4.0,
    triton="tl.ceil({0})",
)

TRUNC = Kind(
    "trunc",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.trunc, ("trunc", "fix"), jumps=True),
    shown="trunc({0})",
    symbol="trunc",
    title="_truncated",
    stem="truncated",
    instructions=3,
    test_cost=4.0,
    triton="tl.where({0:atom} < 0.0, tl.ceil({0}), tl.floor({0}))",
)

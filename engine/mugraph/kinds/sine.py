"""Sine and cosine, as of the angles of rotary position embeddings."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Opaque

SIN = Kind(
    "sin",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.sin, ("sin",)),
    shown="sin({0})",
    symbol="sin",
    title="_sin",
    stem="sine",
    instructions=20,
    ulps=2,
    test_cost=4.0,
    triton="tl.sin({0})",
)

COS = Kind(
    "cos",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.cos, ("cos",)),
    shown="cos({0})",
    symbol="cos",
    title="_cos",
    stem="cosine",
    instructions=20,
    ulps=2,
    test_cost=4.0,
    triton="tl.cos({0})",
)

"""When two float64 results are one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.trust.memory import Floats

TOLERANCE = 1e-9
"""Of an element, relative to it."""
NEAR_ZERO = 1e-12
"""And of the largest: what cancels is not known better."""


def close_to(found: Floats, expected: Floats) -> NDArray[np.bool_]:
    """Element by element. What is no number has to be none in both."""
    with np.errstate(all="ignore"):
        size = np.abs(np.where(np.isfinite(expected), expected, 0.0))
        largest = size.reshape(len(size), -1).max(1).reshape(-1, *[1] * (size.ndim - 1)) if size.ndim > 1 else size
        allowed = TOLERANCE * size + NEAR_ZERO * largest
        near = np.abs(found - expected) <= allowed
        return near | (np.isnan(found) & np.isnan(expected)) | ((found == expected) & np.isinf(expected))

"""The opaque unary functions of `unary.py` on float64 arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _sigmoid(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _gelu(x: Floats) -> Floats:
    return 0.5 * x * (1 + np.vectorize(erf, otypes=[np.float64])(x / sqrt(2.0)))


_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "abs": np.abs,
    "erf": np.vectorize(erf, otypes=[np.float64]),
    "gelu": _gelu,
    "gelu_tanh": lambda x: x * _sigmoid(1.5957691216057308 * (x + 0.044715 * x**3)),
}


def float_unary(fn: str) -> Callable[[Floats], Floats]:
    """By the name it has in `UNARY`. Raises NotImplementedError for one that is not there."""
    if fn not in _FUNCTIONS:
        raise NotImplementedError(f"no float64 meaning is known for the function {fn}")
    return _FUNCTIONS[fn]

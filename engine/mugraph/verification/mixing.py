"""The mixing of 64-bit words that random oracles and random orders are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words (the finaliser of splitmix64); additions and products wrap."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def joined(words: Sequence[NDArray[np.uint64]], commutes: bool) -> NDArray[np.uint64]:
    """One word for all of them, in this order or, where they commute, in any."""
    if commutes:
        words = (reduce(np.minimum, words), reduce(np.maximum, words))
    return reduce(lambda whole, word: mix(whole) + word, words)

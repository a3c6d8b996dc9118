"""Random inputs of any size, an element at a time: the numbers of inputs at full size are too many to draw them all.

Elements of all inputs are numbered. Up to a limit each has numbers of its own; above it, numbers repeat after a random
prime, so two given elements are equal with a chance of about one in a hundred thousand.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mugraph.verification.field import FieldArithmetic

MOST_DRAWN = 1 << 21
"""Elements that have numbers of their own."""


class Inputs:
    """count: elements of all inputs together"""

    def __init__(self, field: FieldArithmetic, rng: np.random.Generator, count: int) -> None:
        self._period = count if count <= MOST_DRAWN else _prime(rng)
        drawn = field.draw(rng, (self._period,))
        self._p, self._q = drawn.p[0], None if drawn.q is None else drawn.q[0]
        self._count = count
        self._twice: tuple[NDArray[np.int64] | None, ...] | None = None

    def block(self, starts: NDArray[np.int64], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Runs of neighbours: [*starts.shape, length]."""
        if length > self._period or self._count == self._period:
            return self.at(starts[..., None] + np.arange(length))
        where = starts % self._period
        if self._twice is None:
            self._twice = tuple(None if one is None else np.concatenate((one, one)) for one in (self._p, self._q))
        p, q = (None if one is None else sliding_window_view(one, length)[where] for one in self._twice)
        assert p is not None
        return p, q

    def at(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        where = numbers if self._count == self._period else numbers % self._period
        return self._p[where], None if self._q is None else self._q[where]


def _prime(rng: np.random.Generator) -> int:
    while True:
        found = int(rng.integers(MOST_DRAWN // 2, MOST_DRAWN)) | 1
        if all(found % divisor for divisor in range(3, int(found**0.5) + 1, 2)):
            return found

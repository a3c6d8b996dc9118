"""Errors of every combination of signs, in a few draws: where random ones may miss the one that matters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

_ROWS = 32
DRAWS = 2 * _ROWS


@dataclass(frozen=True)
class Signs:
    """Of the errors of one draw: one for each place of a program where errors arise, the same for all elements there.

    Of any three of the first 31 places, all eight combinations of signs are in equally many draws (rows of a Hadamard
    matrix and their opposites: an orthogonal array of strength 3). Random signs of each element are another matter: of
    a largest number among many, one is always too large.

    draw: 0 to DRAWS - 1
    """

    draw: int
    _places: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def of(self, place: Hashable) -> int:
        """1 or -1. Places are numbered as they come."""
        column = 1 + self._places.setdefault(place, len(self._places)) % (_ROWS - 1)
        row, opposite = divmod(self.draw, 2)
        return -1 if ((row & column).bit_count() + opposite) % 2 else 1

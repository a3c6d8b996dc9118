"""What the runs of a test by real numbers (ordered.py) have shown of each maximum: that it can be each of its
values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mugraph.verification.modular import Residues
from mugraph.verification.primes import P

TIMES = 3

Picks = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
"""[seeds] of a maximum: whether it was the first of two values that differ, whether the second, and whether it cannot
have been the second."""


@dataclass
class Shown:
    """What one run says, maximum after maximum in the order in which they are computed.

    of_rows:   keep `places`
    picks:     of maxima of two values. places: of those of a row, which of the places won [seeds, places]
    positives: residues of what cannot be negative
    """

    of_rows: bool = True
    picks: list[Picks] = field(default_factory=list[Picks])
    places: list[NDArray[np.bool_]] = field(default_factory=list[NDArray[np.bool_]])
    positives: list[Residues] = field(default_factory=list[Residues])
    _pending: list[tuple[int, Residues]] = field(default_factory=list[tuple[int, Residues]])

    def maximum(self, a: Residues, b: Residues, first: NDArray[np.bool_]) -> None:
        differ = a != b
        own, other = _by_seed(differ & first), _by_seed(differ & ~first)
        never = ~_by_seed(differ)
        # Of v and 0, or v and -v: v, where it turns out not to be negative.
        if bool(((b == 0) | ((a + b) % P == 0)).all()):
            self._pending.append((len(self.picks), np.broadcast_to(a, first.shape)))
        self.picks.append((own, other, never))

    def largest(self, index: NDArray[np.intp], count: int) -> None:
        if not self.of_rows:
            return
        seeds = index.reshape(index.shape[0], -1)
        self.places.append((seeds[:, :, None] == np.arange(count)).any(1))

    def not_negative(self, residues: Residues) -> None:
        self.positives.append(residues)

    def settle(self) -> None:
        """At the end of a run: which maxima of v and 0 are v because v cannot be negative."""
        for number, residues in self._pending:
            own, other, never = self.picks[number]
            if not other.any() and _are_among(residues, self.positives):
                self.picks[number] = own, other, np.ones_like(never)
        self._pending, self.positives = [], []


def is_all_shown(runs: Iterable[tuple[Shown, NDArray[np.bool_]]], times: int = TIMES) -> bool:
    """runs: with the seeds that count. times: in how many of them a maximum must have been each of its values"""
    counted = [(shown, valid) for shown, valid in runs if valid.any()]
    for maxima in zip(*(shown.picks for shown, _ in counted), strict=True):
        valids = [valid for _, valid in counted]
        own, other = (sum(int((pick[i] & v).sum()) for pick, v in zip(maxima, valids, strict=True)) for i in (0, 1))
        is_needless = all(bool(pick[2][v].all()) for pick, v in zip(maxima, valids, strict=True))
        if min(own, other) < times and not is_needless:
            return False
    for rows in zip(*(shown.places for shown, _ in counted), strict=True):
        won = np.logical_or.reduce([row[valid].any(0) for row, (_, valid) in zip(rows, counted, strict=True)])
        if not won.all():
            return False
    return True


def _by_seed(where: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(where.reshape(where.shape[0], -1).any(1))


def _are_among(residues: Residues, known: list[Residues]) -> bool:
    """Whether every element is, in its seed, one of the known ones."""
    seeds: Residues = np.arange(residues.shape[0], dtype=np.int64).reshape(-1, 1)

    def keys(values: Residues) -> Residues:
        return (values.reshape(values.shape[0], -1) + (seeds << 31)).reshape(-1)

    return bool(known) and bool(np.isin(keys(residues), np.concatenate([keys(values) for values in known])).all())

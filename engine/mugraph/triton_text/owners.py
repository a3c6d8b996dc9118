"""Which block writes which element of a tensor, as runs of neighbouring elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.ints import Bools, Ints
from mugraph.triton_text.lattice import Lattice
from mugraph.triton_text.refusals import TooMuch

MOST_RUNS = 1 << 26
"""That are kept: they take some gigabytes, as those of a kernel that writes half a gigabyte with channels last."""
Flat = NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """Elements start .. end - 1 are written by a block; sorted by start, none overlaps another."""

    starts: Flat
    ends: Flat
    blocks: Flat

    @property
    def count(self) -> int:
        """Elements."""
        return int((self.ends - self.starts).sum())

    def places(self, wanted: NDArray[np.bool_] | slice = slice(None)) -> Flat:
        """The elements of some runs."""
        starts, lengths = self.starts[wanted], (self.ends - self.starts)[wanted]
        if not starts.size:
            return starts
        before = np.cumsum(lengths) - lengths
        return np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)


@dataclass(frozen=True)
class Twice:
    """An element that is written by two blocks, or by two lanes of one."""

    place: int
    one: int
    other: int


@dataclass
class Owners:
    """Of one step."""

    _waiting: list[Runs] = field(default_factory=list[Runs])
    _runs: Runs | None = None
    _lattice: Lattice | None = None
    _left: int = field(default_factory=lambda: MOST_RUNS)

    def lay_out(self, lattice: Lattice) -> None:
        """What all blocks write: no element twice."""
        self._lattice = lattice

    def fills(self, size: int) -> bool:
        """Is it known at once that all elements are written?"""
        return self._lattice is not None and self._lattice.fills(size)

    def add(self, runs: Runs) -> Twice | None:
        """What one statement writes, in some blocks: no element twice. Raises TooMuch."""
        self._left -= runs.starts.size
        if self._left < 0:
            raise TooMuch(
                f"more than {MOST_RUNS:,} elements are written apart from one another, too many to look at each"
            )
        order = in_order(runs.starts)
        runs = Runs(runs.starts[order], runs.ends[order], runs.blocks[order])
        over = np.flatnonzero(runs.starts[1:] < np.maximum.accumulate(runs.ends)[:-1])
        if over.size:
            at = int(over[0])
            return Twice(int(runs.starts[at + 1]), int(runs.blocks[at]), int(runs.blocks[at + 1]))
        self._waiting.append(runs)
        return None

    def settle(self) -> Twice | None:
        """Join what all statements write: a block may write an element again, another block may not."""
        if not self._waiting:
            return None
        every = [*([self._runs] if self._runs else []), *self._waiting]
        starts, ends, blocks = (
            np.concatenate([getattr(one, name) for one in every]) for name in ("starts", "ends", "blocks")
        )
        order = in_order(starts)
        starts, ends, blocks = starts[order], ends[order], blocks[order]
        reach = np.maximum.accumulate(ends)
        over = starts[1:] < reach[:-1]
        foreign = np.flatnonzero(over & (blocks[1:] != blocks[:-1]))
        if foreign.size:
            at = int(foreign[0])
            return Twice(int(starts[at + 1]), int(blocks[at]), int(blocks[at + 1]))
        starts[1:] = np.maximum(starts[1:], reach[:-1])
        kept = starts < ends
        self._runs, self._waiting = Runs(starts[kept], ends[kept], blocks[kept]), []
        return None

    @property
    def runs(self) -> Runs:
        if self._lattice is not None and self._runs is None:
            self._runs = Runs(*self._lattice.runs())
        if self._waiting:
            self.settle()
        if self._runs is None:
            none = np.zeros(0, np.int64)
            return Runs(none, none, none)
        return self._runs

    def of(self, places: Flat) -> Flat:
        """1 + the block that writes each element, 0 for none."""
        if self._lattice is not None:
            return self._lattice.of(places)
        runs = self.runs
        if not runs.starts.size:
            return np.zeros(places.shape, np.int64)
        at = np.searchsorted(runs.starts, places, "right") - 1
        found = (at >= 0) & (places < runs.ends[at])
        return np.where(found, runs.blocks[at] + 1, 0)

    def add_to(self, runs: Runs) -> None:
        """What one statement adds to: an element may be in several runs."""
        self._waiting.append(runs)

    def adding_to(self, places: Flat) -> Flat:
        """The blocks that add to any of these elements."""
        wanted = np.unique(places)
        found: list[Flat] = []
        for runs in self._waiting:
            hit = np.searchsorted(wanted, runs.starts) < np.searchsorted(wanted, runs.ends)
            found.append(runs.blocks[hit])
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def added_to(self, places: Flat) -> NDArray[np.bool_]:
        """Which of the elements any block adds to."""
        found = np.zeros(places.shape, np.bool_)
        for runs in self._waiting:
            order = np.argsort(runs.starts, kind="stable")
            reach = np.maximum.accumulate(runs.ends[order])
            at = np.searchsorted(runs.starts[order], places, "right") - 1
            found |= (at >= 0) & (places < reach[at])
        return found

    def by(self, block: int) -> Flat:
        """The elements that a block writes, or adds to."""
        if self._lattice is not None:
            return self._lattice.by(block)
        if self._runs is None and self._waiting:
            return np.unique(np.concatenate([one.places(one.blocks == block) for one in self._waiting]))
        return self.runs.places(self.runs.blocks == block)


def in_order(starts: Flat) -> Flat | slice:
    """What puts runs in order, by an index of their arrays. As a rule they are in order, which costs less to see."""
    return slice(None) if (starts[1:] >= starts[:-1]).all() else np.argsort(starts, kind="stable")


def runs_of(offsets: Ints, mask: Bools | None, blocks: Flat) -> Runs:
    """The addresses of a tile under its mask: along a dimension in which they are neighbours, they are one run."""
    rank = len(offsets.shape)
    conditions = list(mask.parts) if mask is not None else []
    dim = next((d for d in range(rank, 0, -1) if _is_run(offsets, conditions, d)), None)
    parts = list(offsets.parts)
    length = np.ones((1,) * (rank + 1), np.int64)
    if dim is not None:
        along = [condition for condition in conditions if condition.shape[dim] > 1]
        conditions = [condition for condition in conditions if condition.shape[dim] == 1]
        size = offsets.shape[dim - 1]
        length = np.full((1,) * (rank + 1), size, np.int64)
        for condition in along:
            length = np.minimum(length, condition.sum(dim, keepdims=True))
        parts = [np.take(part, [0], dim) for part in parts]
        conditions.append(length > 0)
    shape = (len(blocks), *(1 if at + 1 == dim else n for at, n in enumerate(offsets.shape)))
    places = parts[0]
    for part in parts[1:]:
        places = places + part
    where = np.ones((1,) * (rank + 1), np.bool_)
    for condition in conditions:
        where = where & condition
    ids = blocks.reshape(-1, *(1,) * rank)
    arrays = [np.broadcast_to(array, shape) for array in (places, places + length, ids)]
    if where.all():
        starts, ends, owners = (array.reshape(-1) for array in arrays)
    else:
        on = np.broadcast_to(where, shape)
        starts, ends, owners = (array[on] for array in arrays)
    return Runs(starts, ends, owners)


def _is_run(offsets: Ints, conditions: list[NDArray[Any]], dim: int) -> bool:
    """Do addresses go up by one along the dimension, and do masks leave its first elements?"""
    size = offsets.shape[dim - 1]
    if size == 1:
        return False
    varying = [part for part in offsets.parts if part.shape[dim] > 1]
    if not varying:
        return False
    steps = sum(np.diff(part, axis=dim) for part in varying)
    if not bool(np.all(np.asarray(steps) == 1)):
        return False
    return all(
        not (np.diff(condition.astype(np.int8), axis=dim) > 0).any()
        for condition in conditions
        if condition.shape[dim] > 1
    )

"""Chooses which parts of a computation at full size are run over the fields, so that a test of its indexing stays
cheap.

If all of it is little work, all of it is run. If not, some output tiles are run with all that feeds them: the first,
the last, which may be cut short, and one at random. That may still be much, as for a hidden layer of ten thousand
elements, each a product of four thousand. Then there are several samples. In each, some reduced axes have their full
size and the others two tiles and their tail. Every axis has its own tiles, their number and its own end in at least one
sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.masks import by_sides, diagonal, keep_filled
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verification.relations import Relations
from mugraph.verification.restrict import free_axes
from mugraph.verification.work import work

Kernels = Sequence[tuple[BlockGraph, Schedule]]

WHOLE = 2e6
"""Work up to which all of a computation is run."""
SAMPLE = 2e6
"""Of one of several samples, about."""
JOINT = 9e6
"""Of the one sample in which every axis has its full size."""
MOST = 3e7
"""Of one run in which one axis has its full size and nothing else can be made smaller."""
_UNTILED = 32
"""Elements of a whole axis that is made smaller."""


@dataclass(frozen=True)
class Sample:
    """sizes: of every axis, most of them the full one. slices: of them, axis -> first element and number."""

    sizes: Mapping[str, int]
    slices: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Samples:
    """is_whole: the one sample is all of it. joint: all axes have their full size in one of them.
    never_full: axes that are too much work at their full size"""

    runs: tuple[Sample, ...]
    is_whole: bool = False
    joint: bool = True
    never_full: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """What was run, in words."""
        if self.is_whole:
            return "all of it at full size"
        count = f"{len(self.runs)} samples" if len(self.runs) > 1 else "a sample"
        if self.never_full:
            return f"{count} of its tiles, {len(self.never_full)} of its axes never as long as they are"
        most = [prod(run.sizes.values()) for run in self.runs]
        if not self.joint:
            return f"{count} of its tiles, each axis at its full size in one of them"
        if max(most) > min(most):
            return f"{count} of its tiles, in one of them every axis at its full size"
        return f"{count} of its tiles at full size, the first and the last among them"


def samples(program: TensorProgram, kernels: Kernels, rng: np.random.Generator) -> Samples:
    """Raises Malformed."""
    blocks = [block for block, _ in kernels]
    memory = Relations(program, blocks, sources=False)
    full = memory.sizes
    if work(program, kernels, full) <= WHOLE:
        return Samples((Sample(full, {}),), is_whole=True)
    plan = _Plan(program, kernels, memory, Relations(program, blocks))
    plan.shorten()
    sizes, never_full = plan.by_axes()
    # What is sliced is at its first, its last and another place; what is reduced has its turns at full size.
    count = max(3 if plan.lengths else 1, len(sizes))
    chosen = [sizes[number % len(sizes)] for number in range(count)]
    joint = len(sizes) == 1 and not never_full
    if not joint and plan.work(full) <= JOINT:
        joint, never_full = True, ()
        chosen = [chosen[0], full, *chosen[1:]]
    runs = (Sample(one, plan.slices(number % 3, rng)) for number, one in enumerate(chosen))
    return Samples(tuple(runs), joint=joint, never_full=never_full)


class _Plan:
    """lengths: of what is sliced: the axis that stands for others -> number of elements"""

    def __init__(self, program: TensorProgram, kernels: Kernels, memory: Relations, alike: Relations) -> None:
        """memory: relations without, alike: with those between tensors of one source, which are sliced alike"""
        self._program, self._kernels, self._memory = program, kernels, memory
        self._full = memory.sizes
        found = free_axes(program, [block for block, _ in kernels], memory)
        self._classes: dict[str, list[str]] = {}
        for axes in found:
            first = min(axes)
            self._classes.setdefault(alike.equal.get(first, first), []).extend(sorted(axes))
        self.lengths: dict[str, int] = {}

    def _tile(self, axes: Sequence[str]) -> int | None:
        """The largest tile that a schedule cuts one of the axes into."""
        tiles = [
            tile
            for _, schedule in self._kernels
            for axis, tile in (*schedule.grid, *schedule.loops.items())
            if axis in axes and 0 < tile < self._full[axis]
        ]
        return max(tiles, default=None)

    def shorten(self) -> None:
        """Slices of one tile, or shorter ones if that is too much work."""
        for name, axes in self._classes.items():
            tile = self._tile(axes)
            if tile is not None:
                self.lengths[name] = tile
        while (now := self.work(self._full)) > SAMPLE:
            gains: list[tuple[float, str]] = []
            for name, axes in self._classes.items():
                length = self.lengths.get(name, self._full[axes[0]])
                if length > 2:
                    trial = self.lengths | {name: max(2, length // 2)}
                    gains.append((self.work(self._full, trial), name))
            if not gains or min(gains)[0] > 0.95 * now:
                return
            name = min(gains)[1]
            self.lengths[name] = max(2, self.lengths.get(name, self._full[self._classes[name][0]]) // 2)

    def work(self, sizes: Mapping[str, int], lengths: Mapping[str, int] | None = None) -> float:
        """lengths: in place of its own"""
        own = self.lengths if lengths is None else lengths
        cut = {axis: own[name] for name, axes in self._classes.items() if name in own for axis in axes}
        return work(self._program, self._kernels, {**sizes, **cut})

    def by_axes(self) -> tuple[list[Mapping[str, int]], tuple[str, ...]]:
        """Sizes of the runs: each axis has its full size in one of them. And the axes that never have."""
        if self.work(self._full) <= SAMPLE:
            return [self._full], ()
        smaller = self._smaller()
        waiting = sorted(smaller, key=lambda axis: self._full[axis])
        runs: list[Mapping[str, int]] = []
        never: list[str] = []
        while waiting:
            kept: list[str] = []
            for axis in waiting:
                limit = SAMPLE if kept else MOST
                if self.work(self._complete({a: n for a, n in smaller.items() if a not in (*kept, axis)})) <= limit:
                    kept.append(axis)
            if not kept:
                never += waiting
                break
            runs.append(self._complete({a: n for a, n in smaller.items() if a not in kept}))
            waiting = [axis for axis in waiting if axis not in kept]
        return runs or [self._complete(smaller)], tuple(never)

    def _smaller(self) -> dict[str, int]:
        """Reduced and looped axes that can have fewer elements, with two tiles and the tail."""
        alike: dict[str, list[str]] = {}
        for axis in self._full:
            alike.setdefault(self._memory.equal.get(axis, axis), []).append(axis)
        sliced = {axis for axes in self._classes.values() for axis in axes}
        found: dict[str, int] = {}
        for name, axes in alike.items():
            if name in self._memory.products or sliced & set(axes):
                continue
            size, tile = self._full[name], self._tile(axes)
            least = _UNTILED if tile is None else 2 * tile + size % tile
            if least < size and self._stay_filled(self._complete({name: least})):
                found[name] = least
        return found

    def _stay_filled(self, sizes: Mapping[str, int]) -> bool:
        """Do several masks, a window's two, still leave something of each row?"""
        groups = by_sides(self._program.ops).items()
        return all(keep_filled(masks, sides, self._full, sizes) for sides, masks in groups if len(masks) > 1)

    def _complete(self, smaller: Mapping[str, int]) -> dict[str, int]:
        """The sizes of all axes, from those of the axes that stand for others."""
        equal, products = self._memory.equal, self._memory.products

        def size(axis: str) -> int:
            name = equal.get(axis, axis)
            if name in products:
                return prod(size(part) for part in products[name])
            return smaller.get(name, self._full[name])

        return {axis: size(axis) for axis in self._full}

    def slices(self, which: int, rng: np.random.Generator) -> dict[str, tuple[int, int]]:
        """which: 0 the first, 1 the last, 2 another one, and where a mask runs along two axes, one that it crosses"""
        found: dict[str, tuple[int, int]] = {}
        for name, length in self.lengths.items():
            axes = self._classes[name]
            size, tile = self._full[axes[0]], self._tile(axes) or length
            match which:
                case 0:
                    start = 0
                case 1:
                    start = max((size - 1) // tile * tile, size - length)
                case _:
                    start = int(rng.integers(0, -(-size // tile))) * tile
            found |= dict.fromkeys(axes, (start, min(length, size - start)))
        return self._crossed(found) if which == 2 else found

    def _crossed(self, slices: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        for op in self._program.ops:
            if op.kind is Kind.MASK and op.rows and op.columns and {op.rows[0], op.columns[0]} <= slices.keys():
                below, beside = (prod(self._full[axis] for axis in axes[1:]) for axes in (op.rows, op.columns))
                start, length = slices[op.rows[0]]
                first, count = slices[op.columns[0]]
                middle = (start * below + length * below // 2 + diagonal(op)) // beside
                first = min(max(0, middle - count // 2), self._full[op.columns[0]] - count)
                axes = next(axes for axes in self._classes.values() if op.columns[0] in axes)
                if op.rows[0] not in axes:
                    slices |= dict.fromkeys(axes, (first, count))
        return slices

"""Schedules by size for a kernel whose reduction is split over the grid: how long a part is at each size, with which
tiles. Many short parts keep a device busy, and the kernel that joins them takes longer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.parts import Parts
from mugraph.ir.transforms.resizing import resize_block
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.sizes import ScheduleLimits, fits
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.varying_parts import lengths, of_part
from mugraph.targets import Target

LENGTHS = 3
"""Lengths of a part, the best by a coarse estimate, all of whose schedules are estimated."""
_FEW = ScheduleLimits(max_candidates=8, num_warps=(4,), num_stages=(3,))


Later = Sequence[tuple[BlockGraph, Schedule]]
"""Kernels that run after the first one: some of them join its parts."""
Look = tuple[float, BlockGraph]
"""A coarse estimate in microseconds, of the first kernel with parts of one length and of what joins them."""


@dataclass
class PartSchedules:
    """Of one program on one device. What is found for a block graph at sizes is kept.

    varying: the program's axes whose sizes vary
    """

    varying: Collection[str]
    target: Target
    _looked: dict[tuple[int, ...], list[Look]] = field(default_factory=dict[tuple[int, ...], list[Look]])
    _found: dict[tuple[int, ...], list[Candidate]] = field(default_factory=dict[tuple[int, ...], list[Candidate]])
    _listed: dict[tuple[int, int], list[Schedule]] = field(default_factory=dict[tuple[int, int], list[Schedule]])
    _kept: list[BlockGraph] = field(default_factory=list[BlockGraph])

    def looks(self, block: BlockGraph, later: Later, parts: Parts, sizes: Mapping[str, int]) -> list[Look]:
        """The first kernel at the program's sizes with parts of each length, best first."""
        key = (id(block), *sizes.values())
        if key not in self._looked:
            self._kept.append(block)
            most = block.sizes[parts.split]
            made = [(n, _in(block, parts, sizes, n)) for n in lengths(sizes[parts.axis], most)]
            best = ((one, self._coarse_us(block, one, parts, length)) for length, one in made)
            looks = [(us + self._joined_us(one, later, parts), one) for one, us in best if us < inf]
            self._looked[key] = sorted(looks, key=lambda look: look[0])
        return self._looked[key]

    def _coarse_us(self, block: BlockGraph, one: BlockGraph, parts: Parts, length: int) -> float:
        """Of the kernel at a size, with the schedules that are the best for parts of this length where it was looked at
        first: another size has more or fewer of these parts."""
        shape, listed = Shape(one), self._listed.get((id(block), length), ())
        fitting = ((schedule, used) for schedule in listed if (used := fits(shape, schedule, self.target, _FEW)))
        us = min((estimate_us(shape, schedule, self.target, used) for schedule, used in fitting), default=inf)
        if us < inf:
            return us
        found = of_part(one, parts.split, parts.part, self.target, _FEW)
        self._listed[id(block), length] = [replace(each.schedule, part=0) for each in found]
        return found[0].estimate_us if found else inf

    def alike(
        self, block: BlockGraph, own: Schedule, later: Later, parts: Parts, sizes: Mapping[str, int]
    ) -> list[Candidate]:
        """Schedules of the first kernel under which its text may stay as it is with `own`, best first, with the lengths
        that look best. Estimates are of it and of what joins its parts."""
        key = (id(block), *sizes.values())
        if key not in self._found:
            every: list[Candidate] = []
            for _, one in self.looks(block, later, parts, sizes)[:LENGTHS]:
                joined_us = self._joined_us(one, later, parts)
                made = of_part(one, parts.split, parts.part, self.target)
                every += [replace(kernel, estimate_us=kernel.estimate_us + joined_us) for kernel in made]
            self._found[key] = sorted(every, key=lambda kernel: kernel.estimate_us)
        varying = {*self.varying, parts.split, parts.part}
        fixed = {axis: size for axis, size in block.sizes.items() if axis not in varying}
        kind = kind_of(own, parts.split, fixed)
        return [one for one in self._found[key] if kind_of(one.schedule, parts.split, fixed) == kind]

    def _joined_us(self, first: BlockGraph, later: Later, parts: Parts) -> float:
        """Of the kernels that join the parts."""
        total = 0.0
        for block, schedule in later:
            if parts.split in block.sizes:
                sizes = {axis: first.sizes.get(axis, n) for axis, n in block.sizes.items()}
                total += estimate_us(resize_block(block, sizes, sizes.keys()), schedule, self.target)
        return total


def kind_of(schedule: Schedule, split: str = "", fixed: Mapping[str, int] | None = None) -> object:
    """Properties of a schedule that its kernel's text depends on. split: an axis of the grid, whatever is said of it.
    fixed: sizes that are the same in all launches: a tile that holds all of one is written otherwise"""
    tiles = {**dict(schedule.grid), **schedule.loops}
    whole = frozenset(axis for axis, size in (fixed or {}).items() if tiles.get(axis, 0) >= size)
    grid = frozenset(axis for axis, _ in schedule.grid if axis != split)
    return schedule.swap, grid, frozenset(schedule.loops), whole


def in_order(schedule: Schedule, own: Schedule) -> Schedule:
    """The schedule, with its grid axes on the same dimensions as those of `own`."""
    tiles = dict(schedule.grid)
    return replace(schedule, grid=tuple((axis, tiles.get(axis, tile)) for axis, tile in own.grid))


def sizes_with(parts: Parts, sizes: Mapping[str, int], length: int) -> dict[str, int]:
    """Of the axes that stand for the one in parts, where a part has so many elements; the last one is filled up."""
    return {**sizes, parts.split: -(-sizes[parts.axis] // length), parts.part: length}


def _in(block: BlockGraph, parts: Parts, sizes: Mapping[str, int], length: int) -> BlockGraph:
    every = sizes_with(parts, sizes, length)
    return resize_block(block, {axis: every.get(axis, n) for axis, n in block.sizes.items()}, every.keys())

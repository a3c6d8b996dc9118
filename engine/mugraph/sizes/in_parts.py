"""Schedules by size for a kernel whose reduction is split over the grid: how long a part is at each size, with which
tiles. Many short parts keep a device busy, and the kernel that joins them takes longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.parts import Parts
from mugraph.ir.transforms.resizing import resize_block
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.sizes import ScheduleLimits
from mugraph.search.schedules.varying_parts import LEAST, of_part
from mugraph.targets import Target

LENGTHS = 3
"""Lengths of a part, the best by a coarse estimate, all of whose schedules are estimated."""
_FEW = ScheduleLimits(max_candidates=1, num_warps=(4,), num_stages=(3,))


def lengths(size: int, most: int) -> list[int]:
    """Powers of two that cut an axis of this size into so many parts at most; the last one holds all of it."""
    found = [1 << n for n in range(LEAST.bit_length() - 1, size.bit_length() + 1)] or [LEAST]
    longest = next((at for at, length in enumerate(found) if length >= size), len(found) - 1)
    return [length for length in found[: longest + 1] if -(-size // length) <= most]


Look = tuple[float, BlockGraph]
"""A coarse estimate in microseconds, of the first kernel with parts of one length and of what joins them."""


def looks(
    block: BlockGraph,
    later: Sequence[tuple[BlockGraph, Schedule]],
    parts: Parts,
    sizes: Mapping[str, int],
    target: Target,
) -> list[Look]:
    """The first kernel at the program's sizes with parts of each length, best first. later: the kernels that join the
    parts"""  # fmt: skip
    made = [_in(block, parts, sizes, length) for length in lengths(sizes[parts.axis], block.sizes[parts.split])]
    found = [
        (best[0].estimate_us + _joined_us(one, later, parts, target), one)
        for one in made
        if (best := of_part(one, parts.split, parts.part, target, _FEW))
    ]
    return sorted(found, key=lambda look: look[0])


def first_kernels(
    looked: Sequence[Look], later: Sequence[tuple[BlockGraph, Schedule]], parts: Parts, target: Target
) -> list[Candidate]:
    """Schedules of the first kernel with the lengths that look best, best first. Estimates are of it and of what joins
    its parts."""
    every: list[Candidate] = []
    for _, block in looked[:LENGTHS]:
        joined_us = _joined_us(block, later, parts, target)
        made = of_part(block, parts.split, parts.part, target)
        every += [replace(one, estimate_us=one.estimate_us + joined_us) for one in made]
    return sorted(every, key=lambda one: one.estimate_us)


def sizes_with(parts: Parts, sizes: Mapping[str, int], length: int) -> dict[str, int]:
    """Of the axes that stand for the one in parts, where a part has so many elements; the last one is filled up."""
    return {**sizes, parts.split: -(-sizes[parts.axis] // length), parts.part: length}


def _in(block: BlockGraph, parts: Parts, sizes: Mapping[str, int], length: int) -> BlockGraph:
    every = sizes_with(parts, sizes, length)
    return resize_block(block, {axis: every.get(axis, n) for axis, n in block.sizes.items()}, every.keys())


def _joined_us(first: BlockGraph, later: Sequence[tuple[BlockGraph, Schedule]], parts: Parts, target: Target) -> float:
    """Of the kernels that join the parts."""
    total = 0.0
    for block, schedule in later:
        if parts.split in block.sizes:
            sizes = {axis: first.sizes.get(axis, n) for axis, n in block.sizes.items()}
            total += estimate_us(resize_block(block, sizes, sizes.keys()), schedule, target)
    return total

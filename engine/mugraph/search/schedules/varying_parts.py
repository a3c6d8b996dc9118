"""Splits of a reduction into parts of which the last may be shorter (ir/parts.py): over an axis whose size varies,
where the launch chooses how long a part is, and over one of a fixed size that few powers of two divide.

A block graph with such a split has parts as long as they are at the largest size. Its number of parts is the most that
a launch has; at smaller sizes it has as many, or fewer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.parts import parts_names, with_part
from mugraph.ir.transforms.resizing import resize_block
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.sizes import ScheduleLimits, fits, schedules
from mugraph.search.schedules.splits import Cut, part_counts
from mugraph.search.schedules.tiles import Shape, next_power
from mugraph.targets import Target

LEAST = 32
"""Elements of a part."""
MOST = 64
"""Parts, where their number has to divide a size."""


@dataclass(frozen=True)
class OfAnySize:
    """A cut whose first kernel walks its part in a loop, so that the part may have any length."""

    cut: Cut

    @property
    def axis(self) -> str:
        return self.cut.axis

    def counts(self, most: int) -> list[int]:
        """Also the largest number of parts that divides the axis: of a joined one, as of 4,096 keys and 4 more, few
        powers of two do."""
        size = self.cut.block.sizes[self.axis]
        powers = part_counts(size)
        dividing = [n for n in range(2, MOST + 1) if size % n == 0 and size // n >= LEAST]
        return powers + [n for n in dividing[-1:] if n > max(powers, default=0)]

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        return [self.cut.at(count)]


def lengths(size: int, most: int) -> list[int]:
    """Powers of two that cut an axis of this size into so many parts at most; the last one holds all of it."""
    found = [1 << n for n in range(LEAST.bit_length() - 1, size.bit_length() + 1)] or [LEAST]
    longest = next((at for at, length in enumerate(found) if length >= size), len(found) - 1)
    return [length for length in found[: longest + 1] if -(-size // length) <= most]


@dataclass(frozen=True)
class Ragged(OfAnySize):
    """Of an axis of a fixed size that few powers of two divide. Parts are as long as a power of two, and the last one
    is shorter."""

    def counts(self, most: int) -> list[int]:
        block, size = self.cut.block, self.cut.block.sizes[self.axis]
        most = MOST if any(op.kind.contracts for op in block.ops) else most
        every = (-(-size // length) for length in lengths(size, most) if size % length)
        return sorted(count for count in every if count > 1)

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        return [self.cut.of(count, next_power(-(-self.cut.block.sizes[self.axis] // count)))]


def divides_badly(size: int) -> bool:
    """Are there numbers of parts, powers of two, that would be worth a look and do not divide the axis?"""
    return any(size % (1 << n) for n in range(1, MOST.bit_length()) if size >> n >= LEAST)


def parts_in(block: BlockGraph, varying: Collection[str]) -> tuple[str, str] | None:
    """The two axes that a first kernel has in place of one that varies."""
    return next((two for two in map(parts_names, varying) if two[1] in block.sizes), None)


def of_part(
    block: BlockGraph, split: str, part: str, target: Target, limits: ScheduleLimits | None = None
) -> list[Candidate]:
    """Schedules of a first kernel, best first: those that walk a part in several tiles, and those whose tile is a part
    (which a loop has no reason for where it is all of an axis: they are the tiles of a part that is twice as long)."""
    limits, size = limits or ScheduleLimits(), block.sizes[part]
    found = schedules(block, target, limits)
    longer = resize_block(block, {**block.sizes, part: 2 * size}, {part})
    shape = Shape(block)
    for one in schedules(longer, target, limits):
        if one.schedule.loops.get(part) != size:
            continue
        used = fits(shape, one.schedule, target, limits)
        if used:
            found.append(Candidate(block, one.schedule, estimate_us(shape, one.schedule, target, used)))
    made = ((one, with_part(one.schedule, block.sizes, split, part)) for one in found)
    return sorted(
        (replace(one, schedule=schedule) for one, schedule in made if schedule is not None),
        key=lambda one: one.estimate_us,
    )

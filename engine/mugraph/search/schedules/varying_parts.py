"""Splits of a reduction over an axis whose size varies: the launch chooses how long a part is (ir/parts.py).

A block graph with such a split has parts as long as they are at the largest size. Its number of parts is the most that
a launch has; at smaller sizes it has as many, or fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.search.schedules.splits import Cut, part_counts, parts_names

LEAST = 16
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
        if self.cut.tells_places_apart:
            return []
        size = self.cut.block.sizes[self.axis]
        return part_counts(size) or [n for n in range(2, MOST + 1) if size % n == 0 and size // n >= LEAST][-1:]

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        return [self.cut.at(count)]


def chosen_parts(candidates: Iterable[Candidate], varying: Collection[str]) -> list[Candidate]:
    """The candidates; of a split of an axis that varies those that have one part in each block, with its length."""
    found: list[Candidate] = []
    for one in candidates:
        names = next((two for two in map(parts_names, varying) if two[1] in one.block.sizes), None)
        schedule = one.schedule if names is None else with_part(one.schedule, one.block.sizes, *names)
        found += [replace(one, schedule=schedule)] if schedule is not None else []
    return found


def with_part(schedule: Schedule, sizes: Mapping[str, int], split: str, part: str) -> Schedule | None:
    """A schedule of a first kernel with the length of a part, of whole tiles; None where a block has several parts, or
    does not walk its own."""
    tile = schedule.loops.get(part, 0)
    if not tile or dict(schedule.grid).get(split, 1) != 1:
        return None
    return replace(schedule, part=-(-sizes[part] // tile) * tile)

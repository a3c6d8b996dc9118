"""What a search may spend, what it found, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from mugraph.ir.block import BlockGraph

WORK_PER_SECOND = 100_000
"""Work granted per second of the time budget: about a fifth of what one core of a server does, so that a busy machine
finds what an idle one finds."""


def never() -> bool:
    """The search is not cancelled: what is asked where nobody can cancel it."""
    return False


class NotSearchable(ValueError):
    """The program is outside of what the search covers; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a search.

    max_block_ops:  topologies up to this many block operators are searched completely; a program whose direct form is
                    larger is searched as far as `work` reaches, to `slack` operators over its direct form
    slack:          operators a topology may have more than the program's direct form
    seconds:        of wall-clock for the whole search; the work granted is in proportion (WORK_PER_SECOND), and ends a
                    search before the time does unless the machine is very busy
    work_seconds:   that work is granted for, where they are fewer: on a busy machine the search may take longer for it
    max_loops:      loops in a block graph, nested or one after the other
    uncut:          length up to which axes are not looped over (mugraph.search.uncut)
    max_topologies: per loop nest; the smallest are kept
    max_values:     per loop nest; saturation stops there
    memory:         bytes, by estimate; saturation stops there
    """

    max_block_ops: int = 11
    slack: int = 2
    seconds: float = 20.0
    work_seconds: float | None = None
    max_loops: int = 2
    uncut: int = 0
    max_topologies: int = 256
    max_values: int = 20_000
    memory: int = 512 << 20

    @property
    def work(self) -> int:
        """Comparisons of abstract expressions, or as much other work."""
        return int(WORK_PER_SECOND * (self.seconds if self.work_seconds is None else self.work_seconds))

    def shared(self, among: int) -> Limits:
        """Of each of so many searches, in place of one."""
        work = None if self.work_seconds is None else self.work_seconds / among
        return replace(self, seconds=self.seconds / among, work_seconds=work)


@dataclass(frozen=True, slots=True)
class Found:
    """A topology, and seconds since the search began."""

    block: BlockGraph
    seconds: float


@dataclass(frozen=True, slots=True)
class Stats:
    """How a search ended.

    topologies:  yielded
    values:      distinct values reached, over all loop nests
    complete:    every topology within the operator bound was found: `max_block_ops`, or less where the program's direct
                 form and the slack are less. What a larger program has beyond it may still be cut by `ended_by`
    complete_to: operators up to which every topology was found
    ended_by:    "space" (nothing left), "size" (the operator bound cut values off), "topologies", "values", "work",
                 "memory", "time", "cancelled", "traffic" (a kernel takes about as long as reading and writing), or
                 "fit" (no kernel found so far fits on the device)
    pruned:      reason -> pairs of values, or single operators on values, that were discarded. "expression": no part of
                 the output's abstract expression; "size": in no topology within the operator bound; "type": axes that
                 do not fit, or a loop's result inside of it; "field": division by zero, or the root of a negative;
                 "duplicate": a known value, kept as another way to it; and topologies: "nest" (no order of loops runs
                 it), "softmax" (overflows)
    seconds:     wall-clock
    """

    topologies: int = 0
    values: int = 0
    complete: bool = False
    complete_to: int = 0
    ended_by: str = "running"
    pruned: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0


class Searcher(Protocol):
    """A search of one program, wherever it is worked on."""

    @property
    def stats(self) -> Stats: ...
    def run(self) -> Iterator[Found]: ...

"""What a search may spend, what it found, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.ir.block import BlockGraph


class NotSearchable(ValueError):
    """The program is outside of what the search covers; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a search.

    max_block_ops:  topologies up to this many block operators are searched completely; a program whose direct form is
                    larger is searched within `seconds`, to `slack` operators over its direct form
    slack:          operators a topology may have more than the program's direct form
    seconds:        of wall-clock for the whole search
    max_loops:      loops in a block graph, nested or one after the other
    max_topologies: per loop nest; the smallest are kept
    max_values:     per loop nest; saturation stops there
    """

    max_block_ops: int = 11
    slack: int = 2
    seconds: float = 8.0
    max_loops: int = 2
    max_topologies: int = 256
    max_values: int = 20_000


@dataclass(frozen=True, slots=True)
class Found:
    """A topology, and seconds since the search began."""

    block: BlockGraph
    seconds: float


@dataclass(frozen=True, slots=True)
class Stats:
    """How a search ended.

    topologies: yielded
    values:     distinct values reached, over all loop nests
    complete:   the whole space within the operator bound was searched
    ended_by:   "space" (nothing left), "size" (the operator bound cut values off), "topologies", "values", "time" or
                "cancelled"
    pruned:     reason -> combinations discarded: "type", "size", "expression", "duplicate", "field", "softmax", "nest"
    seconds:    wall-clock
    """

    topologies: int = 0
    values: int = 0
    complete: bool = False
    ended_by: str = "running"
    pruned: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

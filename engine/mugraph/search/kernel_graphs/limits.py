"""What a search for kernel graphs may spend, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mugraph.search.schedules.tiles import MIN_DOT
from mugraph.search.topologies.limits import Limits

MAX_KERNELS = 5
"""Of a kernel graph (Mirage §8)."""


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """Bounds of a search for kernel graphs.

    max_kernels: in a kernel graph
    max_parts:   different (value, inputs) that are searched for each output, the most promising first
    max_reads:   stored values that one kernel reads
    partitions:  that are kept at each step, the best by estimate
    slack:       estimates up to this many times the best known candidate's are followed up: the model errs
    variants:    forms of the program, of those the one-kernel search has found, whose values are cut as well
    each:        of the search for one part
    """

    max_kernels: int = MAX_KERNELS
    max_parts: int = 16
    max_reads: int = 4
    partitions: int = 12
    slack: float = 1.3
    variants: int = 3
    each: Limits = field(default_factory=lambda: Limits(seconds=4.0, work_seconds=1.0, max_topologies=6, uncut=MIN_DOT))

    @staticmethod
    def of(max_kernels: int, max_block_ops: int) -> GraphLimits:
        """The usual ones, with these."""
        limits = GraphLimits(max_kernels=max_kernels)
        return replace(limits, each=replace(limits.each, max_block_ops=max_block_ops))


@dataclass(frozen=True, slots=True)
class GraphStats:
    """parts:     different (value, inputs) that were searched
    recalled:  parts that were known from others but for their names
    graphs:    kernel graphs given
    complete:  every partition within the slack was looked at
    ended_by:  "space", "partitions" (there may be more than are kept), "parts", "time" or "cancelled"
    """

    parts: int = 0
    recalled: int = 0
    graphs: int = 0
    complete: bool = False
    ended_by: str = "running"

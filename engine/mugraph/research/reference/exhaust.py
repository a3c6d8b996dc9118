"""The search's own parts run to the end under one exact bound of operators: with and without expression pruning.

`Search` itself bounds a program by its direct form and shares its time between loop nests; a table by number of
operators needs neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import searchable
from mugraph.research.reference.sizes import loop_sets
from mugraph.search.algebra.abstract import NF, Algebra
from mugraph.search.topologies.applying import Applying
from mugraph.search.topologies.extract import Extraction
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.remaining import Unbounded
from mugraph.search.topologies.saturate import Saturation
from mugraph.search.topologies.sites import Marks, Sites
from mugraph.search.topologies.topology import Topologies

_UNBOUNDED = 1 << 60
_POLL = 64
"""Graphs read off, or turns of the reading without one, between two questions whether to stop."""


class Unpruned(Saturation):
    """Saturation without regard to the output's abstract expression: every operator that types is applied.

    To its advantage: two values whose smallest known graphs are too large together are left at that, where the search
    proper looks again whether others share more. There are too many of them here to be kept.
    """

    def __init__(self, frame: Frame, max_ops: int, max_values: int) -> None:
        super().__init__(frame, max_ops, max_values)
        self._sites = _AnySite(self._algebra, self.goal.nf)
        self._remaining = Unbounded(self._algebra, self.goal.nf, (), {}, dots=True)
        self._applying = _Anything(frame, self._sites, self.goal.nf, self.pruned)

    def _doubt(self, inputs: tuple[int, ...], distance: int) -> None:
        pass

    def _binaries(self, index: int) -> None:
        """What is too large is cut before its expressions are built, which are most of the memory here."""
        own = self._dags[index].bit_count()
        for group in list(self._groups.values()):
            if max(own, group.size) < self.max_ops:
                self._with_group(index, group)
            else:
                self.pruned["size"] += len(group.members)


class _Anything(Applying):
    def leads_on(self, nf: NF) -> bool:
        return True


class _AnySite(Sites):
    def marks(self, x: NF) -> Marks:
        return Marks(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Exhausted:
    """blocks: topologies of all loop sets; values: reached; ended_by: "space", or "cancelled", or "memory"."""

    blocks: tuple[BlockGraph, ...]
    values: int
    ended_by: str


def exhaust(
    program: TensorProgram,
    max_ops: int,
    max_loops: int = 2,
    pruned: bool = True,
    memory: int = 2 << 30,
    cancelled: Callable[[], bool] = lambda: False,
) -> Exhausted:
    """Every topology of at most `max_ops` operators, one loop set after the other. memory: bytes, by estimate, of one
    loop set. Raises NotSearchable."""
    parts: list[Exhausted] = []
    for loops in loop_sets(program, max_loops):
        parts.append(_with_loops(program, max_ops, loops, pruned, memory, cancelled))
        if parts[-1].ended_by != "space":
            break
    return _together(parts)


def exhaust_in_processes(
    program: TensorProgram, max_ops: int, pool: Executor, seconds: float, max_loops: int = 2, memory: int = 2 << 30
) -> Exhausted:
    """What `exhaust` finds, in its order, each loop set in a process of the pool. Stopped after `seconds`."""
    over = time.time() + seconds  # the wall clock is the one that processes share
    loops = loop_sets(program, max_loops)
    return _together(
        list(pool.map(_until, *zip(*((program, max_ops, one, memory, over) for one in loops), strict=True)))
    )


def _until(program: TensorProgram, max_ops: int, loops: tuple[str, ...], memory: int, over: float) -> Exhausted:
    return _with_loops(program, max_ops, loops, True, memory, lambda: time.time() > over)


def _together(parts: Sequence[Exhausted]) -> Exhausted:
    ended_by = next((part.ended_by for part in parts if part.ended_by != "space"), "space")
    return Exhausted(tuple(b for part in parts for b in part.blocks), sum(part.values for part in parts), ended_by)


def _with_loops(
    program: TensorProgram,
    max_ops: int,
    loops: tuple[str, ...],
    pruned: bool,
    memory: int,
    cancelled: Callable[[], bool],
) -> Exhausted:
    frame = Frame(program, loops, Algebra(searchable(program.ops)))
    saturation = (Saturation if pruned else Unpruned)(frame, max_ops, _UNBOUNDED)
    for _ in saturation.steps():
        if cancelled():
            return Exhausted((), len(saturation.values), "cancelled")
        if saturation.bytes > memory:
            return Exhausted((), len(saturation.values), "memory")
    blocks: list[BlockGraph] = []
    topologies, ended_by = Topologies(frame, saturation), "space"
    for turn, dag in enumerate(Extraction(saturation, max_ops).dags()):
        block = topologies.build(dag) if dag else None
        if block is not None:
            blocks.append(block)
        if not turn % _POLL and cancelled():
            ended_by = "cancelled"
            break
    return Exhausted(tuple(blocks), len(saturation.values), ended_by)

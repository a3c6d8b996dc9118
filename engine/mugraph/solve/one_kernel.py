"""Search: the topologies that compute a program with one kernel."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from math import inf

from mugraph.events import Event
from mugraph.executors.searches import begin_search
from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.options import Bounds
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.schedules.cost import least_us
from mugraph.search.schedules.held import holds_rows, is_too_large_to_hold
from mugraph.search.schedules.sizes import Looks
from mugraph.search.schedules.tiles import MIN_DOT
from mugraph.search.topologies.limits import Limits, Stats
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.verdicts import Verdicts
from mugraph.targets import Target

LEVEL = 1.2
"""Times of what a program's traffic takes, at which its search ends."""
PATIENCE = 0.4
"""Of the seconds of a search, after which it ends where no kernel found so far fits on the device: the others are for
kernel graphs. Each loop nest has given its first topology by then, and others of it seldom fit where that does not."""


def topologies_of_one(
    program: TensorProgram,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool],
    verdicts: Verdicts,
    telling: Telling,
    ending: Ending = NO_END,
) -> Generator[Event, None, tuple[list[BlockGraph], Stats]]:
    """All that are found, and how the search ended. The first that is right is told of at once, and after it each that
    a coarse look expects to be faster than all before. Raises NotSearchable.

    A program without a product ends its search where its kernel takes about as long as its traffic: no other topology
    moves fewer bytes, or has more to save than that. The search ends early where rows have to be held and no topology
    fits, too.
    """
    patience_s = inf
    if holds_rows(program):  # else a coarse look that finds no tiles that fit says nothing of others
        patience_s = 0.0 if is_too_large_to_hold(program) else PATIENCE * bounds.seconds
    fitting = False

    def in_vain() -> bool:
        return telling.first_hit_s is not None and not fitting and telling.seconds > patience_s

    def ended() -> bool:
        return cancelled() or is_level(program, telling, tools.target) or in_vain()

    limits = Limits(bounds.max_ops, seconds=bounds.within(ending.search_s).seconds, uncut=MIN_DOT)
    search = begin_search(program, limits, tools.executor, ended, tools.alike)
    looks = Looks(tools.target)
    blocks: list[BlockGraph] = []
    for found in search.run():
        block = found.block
        blocks.append(block)
        if telling.first_hit_s is None and verdicts.of_block(block).passed:
            yield from telling.hit(block)
        if telling.first_hit_s is not None:
            candidate = looks.at(block)
            fitting = fitting or candidate is not None
            if candidate is not None and telling.is_promising(candidate) and verdicts.early(candidate).passed:
                yield from telling.met(candidate)
        yield from telling.progress(len(blocks))
    stats = search.stats
    if stats.ended_by == "cancelled" and not cancelled():
        stats = replace(stats, ended_by="fit" if in_vain() else "traffic")
    return blocks, stats


def is_level(program: TensorProgram, telling: Telling, target: Target) -> bool:
    """Has a program without a product a right kernel that is about as fast as reading and writing its tensors?"""
    if any(op.kind.contracts for op in program.ops):
        return False
    moved = bytes_of((*program.tensors, *program.outputs.values()), program.sizes)
    return telling.best_us <= LEVEL * least_us(moved, target)

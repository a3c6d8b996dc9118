"""The ablation's cells: one search of the program under one bound of operators, timed, stopped at the cap.

"full" works on the loop sets in as many processes as there are processors, started beforehand. The others use one.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from mugraph.ir.program import TensorProgram
from mugraph.research.reference.algorithm import LiteralSearch
from mugraph.research.reference.canonical import canonical
from mugraph.research.reference.exhaust import Exhausted, exhaust, exhaust_in_processes


class Variant(StrEnum):
    FULL = "full"
    ONE = "one process"
    UNPRUNED = "without expression pruning"
    LITERAL = "literal Algorithm 1"


@dataclass(frozen=True, slots=True)
class Cell:
    """seconds, processor: wall-clock of one run, and processor time of the process that asked for it; graphs: distinct
    ones, sizes aside, found in that time; ended_by: "space" where all of it was searched, else what ended it: "cap" or
    "memory"; note: how far it came."""

    max_ops: int
    variant: Variant
    seconds: float
    processor: float
    graphs: int
    ended_by: str
    note: str


def measure(program: TensorProgram, bounds: Sequence[int], cap: float, again: bool = False) -> Iterator[Cell]:
    """Row by row. A variant that did not finish is not run with more operators, which is more of the same space, unless
    `again`."""
    unfinished: set[Variant] = set()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_awake, range(os.cpu_count() or 1)))
        for max_ops in bounds:
            for variant in Variant:
                if variant in unfinished and not again:
                    continue
                cell = _timed(program, max_ops, variant, cap, pool)
                if cell.ended_by != "space":
                    unfinished.add(variant)
                yield cell


def _awake(_: int) -> None:
    """Long enough for every process to take one: they have started then, and imported this."""
    time.sleep(0.3)


def _timed(program: TensorProgram, max_ops: int, variant: Variant, cap: float, pool: Executor) -> Cell:
    began, used = time.monotonic(), time.process_time()

    def over() -> bool:
        return time.monotonic() - began > cap

    if variant is Variant.LITERAL:
        graphs, ended_by, note = _literal(program, max_ops, over)
    elif variant is Variant.FULL:
        graphs, ended_by, note = _saturated(exhaust_in_processes(program, max_ops, pool, cap))
    else:
        found = exhaust(program, max_ops, pruned=variant is Variant.ONE, cancelled=over)
        graphs, ended_by, note = _saturated(found)
    seconds, processor = time.monotonic() - began, time.process_time() - used
    return Cell(max_ops, variant, seconds, processor, graphs, ended_by, note)


def _saturated(found: Exhausted) -> tuple[int, str, str]:
    ended_by = "cap" if found.ended_by == "cancelled" else found.ended_by
    return len(found.blocks), ended_by, f"{found.values:,} values"


def _literal(program: TensorProgram, max_ops: int, over: Callable[[], bool]) -> tuple[int, str, str]:
    search = LiteralSearch(program, max_ops, cancelled=over)
    graphs = len({canonical(block) for _, block in search.run()})
    counts = search.counts
    note = f"{counts.sizes_done:,} of {counts.sizes:,} sizes, {counts.prefixes:,} prefixes"
    return graphs, "cap" if search.stopped else "space", note

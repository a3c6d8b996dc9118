"""The ablation's cells: one search of the program under one bound of operators, timed, stopped at the cap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mugraph.ir.program import TensorProgram
from mugraph.search.reference.algorithm import LiteralSearch
from mugraph.search.reference.canonical import canonical
from mugraph.search.reference.exhaust import exhaust


class Variant(StrEnum):
    FULL = "full (one process)"
    UNPRUNED = "without expression pruning"
    LITERAL = "literal Algorithm 1"


@dataclass(frozen=True, slots=True)
class Cell:
    """seconds, processor: wall-clock and processor time of one run (equal on an idle machine); graphs: distinct ones,
    sizes aside, found in that time; ended_by: "space" where all of it was searched, else what ended it: "cap" or
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
    for max_ops in bounds:
        for variant in Variant:
            if variant in unfinished and not again:
                continue
            cell = _timed(program, max_ops, variant, cap)
            if cell.ended_by != "space":
                unfinished.add(variant)
            yield cell


def _timed(program: TensorProgram, max_ops: int, variant: Variant, cap: float) -> Cell:
    began, used = time.monotonic(), time.process_time()

    def over() -> bool:
        return time.monotonic() - began > cap

    run = _literal if variant is Variant.LITERAL else _saturated
    graphs, ended_by, note = run(program, max_ops, variant, over)
    seconds, processor = time.monotonic() - began, time.process_time() - used
    return Cell(max_ops, variant, seconds, processor, graphs, ended_by, note)


def _saturated(
    program: TensorProgram, max_ops: int, variant: Variant, over: Callable[[], bool]
) -> tuple[int, str, str]:
    found = exhaust(program, max_ops, pruned=variant is Variant.FULL, cancelled=over)
    ended_by = "cap" if found.ended_by == "cancelled" else found.ended_by
    return len(found.blocks), ended_by, f"{found.values:,} values"


def _literal(program: TensorProgram, max_ops: int, variant: Variant, over: Callable[[], bool]) -> tuple[int, str, str]:
    search = LiteralSearch(program, max_ops, cancelled=over)
    graphs = len({canonical(block) for _, block in search.run()})
    counts = search.counts
    note = f"{counts.sizes_done:,} of {counts.sizes:,} sizes, {counts.prefixes:,} prefixes"
    return graphs, "cap" if search.stopped else "space", note

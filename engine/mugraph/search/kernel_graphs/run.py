"""The search for kernel graphs: the most promising partition is looked at first, and its parts are solved as they are
needed.

A part that has not been searched counts with an expected time (expected.py): that of its traffic, or what is left of
the whole program's best kernel. If all parts of the best partition are solved, it is a kernel graph; if not, it says
which part to search next. A partition is also given as soon as its last part is solved, whatever others promise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.program import TensorProgram
from mugraph.search.alike import Alike
from mugraph.search.kernel_graphs.expected import Remainders
from mugraph.search.kernel_graphs.form import Form
from mugraph.search.kernel_graphs.libraries import beside_libraries
from mugraph.search.kernel_graphs.limits import GraphLimits, GraphStats
from mugraph.search.kernel_graphs.partitions import Part, Partition
from mugraph.search.kernel_graphs.parts import Workers, by_estimate
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import without_store
from mugraph.search.topologies.limits import never
from mugraph.targets import Target

_EXPECTED = 1.2
"""How many times the least time of a kernel it is expected to take, if no kernel of the program is known."""
_MOST_EXPECTED = 1.5


@dataclass(frozen=True)
class FoundGraph:
    """A kernel graph with schedules, the best by estimate first, and the program form whose values it cuts."""

    candidates: tuple[Candidate, ...]
    seconds: float


class KernelGraphs:
    """Kernel graphs of a program, of two kernels or more, at least one of them generated.

    blocks, candidates: what the one-kernel search has found for the program, if it has been searched: forms of it that
    are cut too, and what a kernel graph must come near to
    workers: who searches parts beside this process; the same is found in the same order
    alike: searches of programs like the parts, in this process
    `run()` yields a kernel graph as soon as all its parts are known, in order of their estimate among those that are
    known at once; `stats` says how it ended.
    """

    def __init__(
        self,
        program: TensorProgram,
        target: Target,
        limits: GraphLimits | None = None,
        cancelled: Callable[[], bool] = never,
        *,
        blocks: Sequence[BlockGraph] = (),
        candidates: Sequence[Candidate] = (),
        seconds: float = 20.0,
        workers: Workers | None = None,
        alike: Alike | None = None,
    ) -> None:
        self._target, self._limits = target, limits or GraphLimits()
        self._early: tuple[Candidate, ...] = ()
        self._cancelled = cancelled
        self._until = time.monotonic() + seconds
        self._began = time.monotonic()
        self._solver = Solver(target, self._limits.each, self._stop, workers, alike)
        self._best_us = min((candidate.estimate_us for candidate in candidates), default=float("inf"))
        least_us = self._solver.least_us(program)
        expected = min(max(1.0, self._best_us / least_us), _MOST_EXPECTED) if candidates else _EXPECTED
        self._graphs = 0
        self._ended_by = "running"
        forms = [program]
        loopless = (block for block in blocks if not block.loops and len(program.outputs) == 1)
        for block in islice(loopless, self._limits.variants):
            forms.append(without_store(program, block.ops))
        known = by_estimate(candidates)
        remainders = Remainders(known, {op.name for op in program.compute_ops}, target)
        searched = known if known or blocks else None
        self._forms = [Form(form, target, self._limits, self._solver, expected, searched, remainders) for form in forms]

    @property
    def stats(self) -> GraphStats:
        solver = self._solver
        return GraphStats(solver.searched, solver.recalled, self._graphs, self._ended_by == "space", self._ended_by)

    def run(self) -> Iterator[FoundGraph]:
        """Ends when the space within the slack, the limits or the caller ends it."""
        if self._limits.max_kernels < 2:
            self._ended_by = "space"
            return
        given: set[Hashable] = set()
        self._early = beside_libraries(self._forms[0].program, self._target, self._limits.max_kernels, self._solver)
        if self._early:
            self._graphs += 1
            self._best_us = min(self._best_us, self._early[0].estimate_us)
            yield FoundGraph(self._early, time.monotonic() - self._began)
        try:
            for form in self._forms:
                yield from self._of_form(form, given)
                if self._ended_by in ("cancelled", "time", "parts"):
                    return
        finally:
            self._solver.close()
        self._ended_by = "partitions" if any(form.is_cut for form in self._forms) else "space"

    def _of_form(self, form: Form, given: set[Hashable]) -> Iterator[FoundGraph]:
        """given: kernel graphs, whatever their values are called"""
        for early in form.early():
            yield from self._given(form, early, given)
        while True:
            missing: Part | None = None
            best = form.best(self._best_us * self._limits.slack, self._stop)
            for partition in best:
                missing = next((part for part, _ in partition.parts if part not in form.solved), None)
                if missing is not None:
                    form.expect(part for other in best for part, _ in other.parts)
                    break
                yield from self._given(form, partition, given)
            if missing is None and not form.is_late:
                return
            if self._stop() or missing is None:
                self._ended_by = "cancelled" if self._cancelled() else "time"
                return
            if self._solver.searched >= self._limits.max_parts * len(form.program.outputs) and not form.is_known(
                missing
            ):
                self._ended_by = "parts"
                return
            form.solve(missing)
            for partition in best:  # perhaps one is known whole now: it is given before others are looked at further
                us = form.known_us(partition)
                if us is not None and us <= self._best_us * self._limits.slack:
                    yield from self._given(form, partition, given)

    def _given(self, form: Form, partition: Partition, given: set[Hashable]) -> Iterator[FoundGraph]:
        what = form.key_of(partition)
        if what in given:
            return
        given.add(what)
        candidates = tuple(one for one in form.candidates(partition) if one not in self._early)
        if candidates:
            self._graphs += 1
            self._best_us = min(self._best_us, candidates[0].estimate_us)
            yield FoundGraph(candidates, time.monotonic() - self._began)

    def _stop(self) -> bool:
        return self._cancelled() or time.monotonic() > self._until

"""The search for kernel graphs: partitions by what they can be expected to take, their parts solved as they are needed.

A part that has not been searched counts with what its traffic takes, as far from the device's bandwidth as the whole
program's best kernel is. The best partition then is one whose parts are all known, or it says which to search next.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.target import Target
from mugraph.search.kernel_graphs.chain import Apart, chained
from mugraph.search.kernel_graphs.limits import GraphLimits, GraphStats
from mugraph.search.kernel_graphs.partitions import Options, Part, Partition, Partitions
from mugraph.search.kernel_graphs.parts import Solved, Workers, by_estimate
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram, without_store, worth_storing
from mugraph.search.renaming import key_of
from mugraph.search.softmax import is_shift_invariant
from mugraph.search.split_schedules import again_us

_SCHEDULES = 6
"""Schedules of each kernel of a kernel graph, the others' being the best."""
_EXPECTED = 1.2
"""Of what a kernel takes at least: what it is expected to take where no kernel of the program is known."""
_MOST_EXPECTED = 1.5


def _never() -> bool:
    return False


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
    `run()` yields a kernel graph as soon as all its parts are known, in order of their estimate among those that are;
    `stats` says how it ended.
    """

    def __init__(
        self,
        program: TensorProgram,
        target: Target,
        limits: GraphLimits | None = None,
        cancelled: Callable[[], bool] = _never,
        *,
        blocks: Sequence[BlockGraph] = (),
        candidates: Sequence[Candidate] = (),
        seconds: float = 20.0,
        workers: Workers | None = None,
    ) -> None:
        self._limits = limits or GraphLimits()
        self._target, self._cancelled = target, cancelled
        self._until = time.monotonic() + seconds
        self._began = time.monotonic()
        self._solver = Solver(target, self._limits.each, self._stop, workers)
        self._best_us = min((candidate.estimate_us for candidate in candidates), default=float("inf"))
        least_us = self._solver.least_us(program)
        self.expected = min(max(1.0, self._best_us / least_us), _MOST_EXPECTED) if candidates else _EXPECTED
        self._graphs = 0
        self._ended_by = "running"
        self._forms = [_Form(program, self, candidates)]
        loopless = (block for block in blocks if not block.loops and len(program.outputs) == 1)
        for block in islice(loopless, self._limits.variants):
            self._forms.append(_Form(without_store(program, block.ops), self, candidates))

    @property
    def stats(self) -> GraphStats:
        solver = self._solver
        return GraphStats(solver.searched, solver.recalled, self._graphs, self._ended_by == "space", self._ended_by)

    @property
    def target(self) -> Target:
        return self._target

    @property
    def limits(self) -> GraphLimits:
        return self._limits

    @property
    def solver(self) -> Solver:
        return self._solver

    def run(self) -> Iterator[FoundGraph]:
        """Ends when the space within the slack, the limits or the caller ends it."""
        if self._limits.max_kernels < 2:
            self._ended_by = "space"
            return
        given: set[Hashable] = set()
        try:
            for form in self._forms:
                yield from self._of_form(form, given)
                if self._ended_by in ("cancelled", "time", "parts"):
                    return
        finally:
            self._solver.close()
        self._ended_by = "partitions" if any(form.is_cut for form in self._forms) else "space"

    def _of_form(self, form: _Form, given: set[Hashable]) -> Iterator[FoundGraph]:
        """given: kernel graphs, whatever their values are called"""
        apart = form.apart()
        if apart is not None:  # what all others are compared with
            given.add(form.key_of(apart))
            yield from self._given(form, apart)
        while True:
            missing: Part | None = None
            best = form.best(self._best_us * self._limits.slack)
            for partition in best:
                missing = next((part for part, _ in partition.parts if part not in form.solved), None)
                if missing is not None:
                    form.expect(part for other in best for part, _ in other.parts)
                    break
                what = form.key_of(partition)
                if what not in given:
                    given.add(what)
                    yield from self._given(form, partition)
            if missing is None:
                return
            if self._stop():
                self._ended_by = "cancelled" if self._cancelled() else "time"
                return
            if self._solver.searched >= self._limits.max_parts * len(form.program.outputs) and not form.is_known(
                missing
            ):
                self._ended_by = "parts"
                return
            form.solve(missing)

    def _given(self, form: _Form, partition: Partition) -> Iterator[FoundGraph]:
        candidates = form.candidates(partition)
        if candidates:
            self._graphs += 1
            self._best_us = min(self._best_us, candidates[0].estimate_us)
            yield FoundGraph(candidates, time.monotonic() - self._began)

    def _stop(self) -> bool:
        return self._cancelled() or time.monotonic() > self._until


class _Form:
    """The program, or an equal one with other values, and what is known of its parts."""

    def __init__(self, program: TensorProgram, search: KernelGraphs, candidates: Sequence[Candidate]) -> None:
        self.program, self._search = program, search
        self._stored = in_memory(program)
        self._is_softmax = any(op.kind is Kind.EXP for op in program.ops) and is_shift_invariant(program.ops)
        self._partitions = Partitions(program, worth_storing(program), search.limits.max_reads)
        self.is_cut = False  # there may be more partitions than are kept
        self._programs: dict[Part, TensorProgram] = {}
        self._expected: dict[Part, float] = {}
        self.solved: dict[Part, Solved] = {}
        if candidates:
            self.solved[self._partitions.whole] = Solved(by_estimate(candidates))

    def best(self, within: float) -> list[Partition]:
        limits = self._search.limits
        found = self._partitions.best(self._options, limits.max_kernels, limits.partitions, within)
        self.is_cut = len(found) == limits.partitions
        return found

    def apart(self) -> Partition | None:
        """Of a program with several outputs: each of them computed for itself, where one kernel can."""
        parts = self._partitions.apart
        if not 1 < len(parts) <= self._search.limits.max_kernels:
            return None
        self.expect(parts)
        for part in parts:
            self.solve(part)
        options = [min(self._options(part), key=lambda option: option[1], default=None) for part in parts]
        chosen = [option for option in options if option is not None]
        if len(chosen) < len(parts) or sum(count for count, _ in chosen) > self._search.limits.max_kernels:
            return None
        counts = [(part, count) for part, (count, _) in zip(parts, chosen, strict=True)]
        return Partition(sum(us for _, us in chosen), tuple(counts))

    def is_known(self, part: Part) -> bool:
        return self._search.solver.knows(self._program(part))

    def expect(self, parts: Iterable[Part]) -> None:
        self._search.solver.expect(self._program(part) for part in parts if part not in self.solved)

    def solve(self, part: Part) -> None:
        self.solved[part] = self._search.solver.solve(self._program(part))

    def key_of(self, partition: Partition) -> Hashable:
        """Equal for partitions that differ in names, or in the order of kernels that do not need one another."""
        return frozenset(Counter((key_of(self._program(part))[0], count) for part, count in partition.parts).items())

    def candidates(self, partition: Partition) -> tuple[Candidate, ...]:
        """Best first: the best of each part, and for each part a few other schedules."""
        if sum(count for _, count in partition.parts) < 2 or len(partition.parts) < 2:
            return ()
        choices = [_choice(self.solved[part].of(count)) for part, count in partition.parts]
        names = {tensor.name for tensor in (*self.program.tensors, *self._stored.values())}
        apart = Apart(names, set(self.program.sizes))
        renamed = [apart.part(choice) for choice in choices]
        best = [choice[0] for choice in renamed]
        chains = [best]
        for at, choice in enumerate(renamed):
            chains += [[*best[:at], other, *best[at + 1 :]] for other in choice[1:]]
        # Library kernels alone are what the user has.
        kept = [chain for chain in chains if not all(one.schedule.library for one in chain)]
        return by_estimate(chained(chain, self._search.target) for chain in kept)

    def _options(self, part: Part) -> Options:
        again = again_us(self._search.target)
        if part in self.solved:
            return [(count, us + again) for count, us in self.solved[part].options]
        if part not in self._expected:
            program = self._program(part)
            safe = not self._is_softmax or is_shift_invariant(program.ops)
            least = self._search.solver.least_us(program)
            self._expected[part] = least * self._search.expected + again if safe else float("inf")
        return [(1, self._expected[part])]

    def _program(self, part: Part) -> TensorProgram:
        if part not in self._programs:
            self._programs[part] = subprogram(self.program, part.values, part.leaves, self._stored)
        return self._programs[part]


def _choice(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best few, and the library's kernel where there is one: the model errs."""
    return [*candidates[:_SCHEDULES], *(one for one in candidates[_SCHEDULES:] if one.schedule.library)]

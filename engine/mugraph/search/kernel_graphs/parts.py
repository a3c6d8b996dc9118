"""One part of a kernel graph, (value, inputs), as a piece of work that can be done anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.library import fast_call, library_call
from mugraph.ir.program import TensorProgram
from mugraph.search.alike import Alike
from mugraph.search.direct import DirectSearch, as_block, is_direct, looped_axes
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.run import Search
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.search.schedules.sizes import ScheduleLimits
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import Limits, NotSearchable
from mugraph.targets import Target

_LIMITS = ScheduleLimits(max_candidates=24, num_warps=(4, 8), num_stages=(2, 3, 4))
_MOST = 48
"""Candidates kept of a part."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Solved:
    """Candidates of a part, best first by estimate: one kernel, or one that is split in two."""

    candidates: tuple[Candidate, ...]

    def of(self, kernels: int) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.candidates if len(candidate.kernels) == kernels)

    @property
    def options(self) -> list[tuple[int, float]]:
        """(kernels, estimate of the best)"""
        best: dict[int, float] = {}
        for candidate in self.candidates:
            best.setdefault(len(candidate.kernels), candidate.estimate_us)
        return list(best.items())


@dataclass(frozen=True)
class PartTask:
    """The best kernels for a program. Equal tasks have equal results."""

    program: TensorProgram
    target: Target
    limits: Limits

    def run(self, cancelled: Callable[[], bool] = _never, alike: Alike | None = None) -> Solved:
        """alike: searches of programs like it. Raises nothing: a program outside of what the search covers has no
        candidates."""
        program, target = self.program, self.target
        found = kernel_candidates(self._blocks(cancelled, alike or Alike()), target, _LIMITS, _MOST, over=cancelled)
        return Solved(by_estimate([*found, *by_library(program, target)]))

    def _blocks(self, cancelled: Callable[[], bool], alike: Alike) -> list[BlockGraph]:
        """Topologies; of several outputs those of each laid over one another."""
        begin = Search if len(self.program.outputs) == 1 else SeveralSearch
        try:
            if is_direct(self.program) and looped_axes(self.program):  # which only a direct search has a loop for
                return [found.block for found in DirectSearch(self.program).run()]
            search = alike.known(self.program, self.limits)
            if search is None:
                search = begin(self.program, self.limits, cancelled)
                search = alike.keeping(self.program, self.limits, search)
            return [found.block for found in search.run()]
        except NotSearchable:
            return []


def by_library(program: TensorProgram, target: Target) -> list[Candidate]:
    """A library's kernel for all of it, if there is one."""
    call = fast_call(block := as_block(program))
    return [Candidate(block, Schedule((), library=True), estimate_call_us(call, target))] if call is not None else []


def is_what_the_code_runs(kernels: Sequence[Candidate]) -> bool:
    """Are all of them library kernels, each for a call that the user's code may have?"""
    if not all(one.schedule.library for one in kernels):
        return False
    calls = [library_call(one.block) for one in kernels]
    return not any(call is not None and call.fuses for call in calls)


class Workers(Protocol):
    """Whoever works on parts beside the caller. count: at the same time"""

    @property
    def count(self) -> int: ...

    def begin(self, task: PartTask) -> Future[Solved]:
        """At once. The future may raise anything: then the caller does it himself."""
        ...

    def result(self, task: PartTask, begun: Future[Solved], cancelled: Callable[[], bool]) -> Solved | None:
        """Waits for it, wherever it has to be begun again; None when cancelled."""
        ...


def by_estimate(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Best first."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.estimate_us))

"""The best kernels for one part, (value, inputs): searched once, whatever its values are called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.target import Target
from mugraph.search.cost import FLOOR_US, estimate_call_us
from mugraph.search.kernel_graphs.renaming import Names, Renaming, key_of
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.limits import Limits, NotSearchable
from mugraph.search.run import Search
from mugraph.search.schedules import ScheduleLimits
from mugraph.search.split_schedules import kernel_candidates

_LIMITS = ScheduleLimits(max_candidates=24, num_warps=(4, 8), num_stages=(2, 3, 4))
_MOST = 48
"""Candidates kept of a part."""


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


class Solver:
    """searched: parts that were. recalled: parts that were known from others but for their names"""

    def __init__(self, target: Target, limits: Limits, cancelled: Callable[[], bool]) -> None:
        self._target, self._limits, self._cancelled = target, limits, cancelled
        self._known: dict[Hashable, tuple[Names, Solved]] = {}
        self.searched = self.recalled = 0

    def knows(self, program: TensorProgram) -> bool:
        return key_of(program)[0] in self._known

    def solve(self, program: TensorProgram) -> Solved:
        """Raises nothing: a program outside of what the search covers has no candidates."""
        key, names = key_of(program)
        if key in self._known:
            old, solved = self._known[key]
            if old == names:
                return solved
            self.recalled += 1
            renaming = Renaming.between(old, names)
            return Solved(tuple(renaming.candidate(candidate) for candidate in solved.candidates))
        self.searched += 1
        solved = Solved(tuple(self._candidates(program)))
        if not self._cancelled():  # what was cut short is not what there is
            self._known[key] = names, solved
        return solved

    def least_us(self, program: TensorProgram) -> float:
        """What any kernel needs that reads the program's tensors and writes its outputs, by the cost model."""
        moved = bytes_of((*program.tensors, *program.outputs.values()), program.sizes)
        return self._target.launch_us + max(0.0, moved / self._target.bandwidth - FLOOR_US)

    def _candidates(self, program: TensorProgram) -> list[Candidate]:
        found = kernel_candidates(self._blocks(program), self._target, _LIMITS, _MOST)
        call = library_call(block := as_block(program))
        if call is not None:
            found.append(Candidate(block, Schedule((), library=True), estimate_call_us(call, self._target)))
        return list(by_estimate(found))

    def _blocks(self, program: TensorProgram) -> list[BlockGraph]:
        """Topologies; of several outputs those of each laid over one another."""
        begin = Search if len(program.outputs) == 1 else SeveralSearch
        try:
            return [found.block for found in begin(program, self._limits, self._cancelled).run()]
        except NotSearchable:
            return []


def by_estimate(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Best first."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.estimate_us))


def as_block(program: TensorProgram) -> BlockGraph:
    """The program as a block graph without loops: what it computes, whatever computes it."""
    stores = [
        Op(f"store_{tensor.name}", Kind.STORE, (value,), program.op(value).axes, tensor=tensor.name)
        for value, tensor in program.outputs.items()
    ]
    tensors = (*program.tensors, *program.outputs.values())
    return BlockGraph(program.name, dict(program.sizes), tensors, (*program.ops, *stores))

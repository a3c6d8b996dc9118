"""The best kernels for one part, (value, inputs): searched once, whatever its values are called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future

from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.renaming import Names, Renaming, key_of
from mugraph.search.alike import Alike
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.parts import PartTask, Solved, Workers, by_estimate, by_library
from mugraph.search.kernel_graphs.subprogram import bytes_of, flops_of
from mugraph.search.kernel_graphs.vain import is_in_vain
from mugraph.search.schedules.cost import least_us
from mugraph.search.topologies.limits import Limits
from mugraph.targets import Target

__all__ = ["Solved", "Solver", "as_block", "by_estimate"]


class Solver:
    """searched: parts that were. recalled: parts that were known from others but for their names

    workers: who works on parts that will perhaps be asked for while others are; what is found does not depend on them
    alike: searches of programs like the parts
    """

    def __init__(
        self,
        target: Target,
        limits: Limits,
        cancelled: Callable[[], bool],
        workers: Workers | None = None,
        alike: Alike | None = None,
    ) -> None:
        self._alike = alike
        self._target, self._limits, self._cancelled, self._workers = target, limits, cancelled, workers
        self._known: dict[Hashable, tuple[Names, Solved]] = {}
        self._begun: dict[Hashable, tuple[Names, Future[Solved]]] = {}
        self.searched = self.recalled = 0

    def knows(self, program: TensorProgram) -> bool:
        return key_of(program)[0] in self._known

    def expect(self, programs: Iterable[TensorProgram]) -> None:
        """Parts that may be asked for next: the workers begin as many of them as they can work on at a time."""
        if self._workers is None:
            return
        for program in programs:
            if sum(not future.done() for _, future in self._begun.values()) >= self._workers.count:
                return
            key, names = key_of(program)
            if key not in self._known and key not in self._begun and not is_in_vain(program):
                self._begun[key] = names, self._workers.begin(self._task(program))

    def solve(self, program: TensorProgram) -> Solved:
        """Raises nothing: a program outside of what the search covers has no candidates."""
        key, names = key_of(program)
        if key in self._known:
            old, solved = self._known[key]
            if old == names:
                return solved
            self.recalled += 1
            renaming = Renaming(old, names)
            return Solved(tuple(renaming.candidate(candidate) for candidate in solved.candidates))
        if is_in_vain(program):
            return Solved(tuple(by_library(program, self._target)))
        self.searched += 1
        solved = self._solved(program, key, names)
        if not self._cancelled():  # what was cut short is not what there is
            self._known[key] = names, solved
        return solved

    def close(self) -> None:
        """Work that has not been started yet is left alone: nobody wants it."""
        for _, future in self._begun.values():
            future.cancel()
        self._begun = {}

    def least_us(self, program: TensorProgram) -> float:
        """What any kernel needs that reads the program's tensors, computes its products and writes its outputs, by the
        cost model."""
        moved = bytes_of((*program.tensors, *program.outputs.values()), program.sizes)
        return max(least_us(moved, self._target), flops_of(program) / self._target.flops)

    def _task(self, program: TensorProgram) -> PartTask:
        return PartTask(program, self._target, self._limits)

    def _solved(self, program: TensorProgram, key: Hashable, names: Names) -> Solved:
        task = self._task(program)
        if self._workers is None:
            return task.run(self._cancelled, self._alike)
        old, future = self._begun.pop(key, (None, None))
        if future is None or old != names:  # of equal estimates the first is kept, and names order them
            future = self._workers.begin(task)
        return self._workers.result(task, future, self._cancelled) or Solved(())

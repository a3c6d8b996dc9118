"""Parts of kernel graphs, worked on by an executor. While one part is asked for, others that may be asked for next are
worked on.

The results, and their order, are those of one process: parts that nobody asks for are not looked at. If a worker dies,
its part is begun again at another worker, and at last here.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, TimeoutError

from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.search.kernel_graphs.parts import PartTask, Solved

_LOOK_S = 0.05
"""Seconds between two looks at whether to stop."""
_LOSSES = 3
"""After so many workers have died over one part it is worked on here."""


class SpreadParts:
    """losses: workers that died while they worked on a part that was asked for"""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.losses = 0

    @property
    def count(self) -> int:
        return self._executor.workers

    def begin(self, task: PartTask) -> Future[Solved]:
        try:
            return self._executor.submit(task)
        except CannotExecute as error:
            future: Future[Solved] = Future()
            future.set_exception(error)
            return future

    def result(self, task: PartTask, begun: Future[Solved], cancelled: Callable[[], bool]) -> Solved | None:
        """Waits for it, wherever it has to be begun again; None when cancelled."""
        lost = 0
        while lost < _LOSSES:
            try:
                return self._awaited(begun, cancelled)
            except (Lost, CancelledError):
                lost += 1
                self.losses += 1
                begun = self.begin(task)
            except CannotExecute:
                break
        return task.run(cancelled)

    def _awaited(self, begun: Future[Solved], cancelled: Callable[[], bool]) -> Solved | None:
        while True:
            if cancelled():
                self._executor.interrupt()
                return None
            try:
                return begun.result(_LOOK_S)
            except TimeoutError:
                continue

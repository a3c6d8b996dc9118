"""Candidates measured on the GPUs of a cluster, by actors that have one GPU each.

A time counts if it was taken on a GPU like ours; what another kind of GPU measured is measured again here. Results come
in the order of the candidates. If a node dies, what it had begun is begun again elsewhere.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import CHILD, ChildProcess, Unavailable
from mugraph.tune.statistics import Summary

_log = logging.getLogger("mugraph.tune")

_LOSSES = 3
"""After so many workers have died over one candidate it is measured here."""
_measurers: dict[tuple[str, ...], Measurer] = {}
"""Of this process, by their command: an actor's measuring process outlives its tasks."""


@dataclass(frozen=True, slots=True)
class Measured:
    """device: that it was taken on"""

    device: str
    result: Summary | Refused


@dataclass(frozen=True)
class MeasureTask:
    """One candidate's time on the worker's GPU. command: of its measuring process"""

    subject: Subject
    inputs: tuple[InputSpec, ...]
    rounds: int
    command: tuple[str, ...] = CHILD

    def run(self) -> Measured:
        """Raises process.Unavailable where there is no GPU after all."""
        measurer = _measurers.setdefault(self.command, Measurer(lambda: ChildProcess(self.command)))
        device = measurer.hello().device
        return Measured(device, measurer.measure_kernel(self.subject, self.inputs, self.rounds))


class SpreadMeasurer(Measurer):
    """gpus: workers that have a GPU each. losses: of them, while they measured"""

    def __init__(
        self,
        gpus: Executor,
        child: Callable[[], ChildProcess] = ChildProcess,
        command: tuple[str, ...] = CHILD,
    ) -> None:
        super().__init__(child)
        self._gpus, self._command = gpus, command
        self.losses = 0

    def begin(self) -> None:
        super().begin()
        self._gpus.begin()

    def at_once(self, output_bytes: int) -> int:
        """All of them: each is measured on whichever GPU is free."""
        return sys.maxsize

    def measure_kernels(
        self,
        kernels: Sequence[tuple[Subject, tuple[InputSpec, ...]]],
        rounds: int = 20,
        best_us: float | None = None,
        together: int = 1,
    ) -> Iterator[Summary | Refused]:
        """best_us, together: of no use here: none waits for another, and none is cut short."""
        tasks = [MeasureTask(subject, inputs, rounds, self._command) for subject, inputs in kernels]
        begun: deque[tuple[MeasureTask, Future[Measured]]] = deque()
        try:
            for task in tasks:
                begun.append((task, self._begun(task)))
            while begun:
                yield self._result(*begun.popleft())
        finally:
            for _, future in begun:
                future.cancel()

    def _begun(self, task: MeasureTask) -> Future[Measured]:
        try:
            return self._gpus.submit(task)
        except CannotExecute as error:
            future: Future[Measured] = Future()
            future.set_exception(error)
            return future

    def _result(self, task: MeasureTask, begun: Future[Measured]) -> Summary | Refused:
        for _ in range(_LOSSES):
            try:
                measured = begun.result()
            except (Lost, CancelledError) as error:
                _log.info("a worker was lost while it measured: %s", error)
                self.losses += 1
                begun = self._begun(task)
            except CannotExecute as error:
                _log.warning("no GPU of the cluster measures; it is done here: %s", error)
                break
            else:
                if measured.device == self._device():
                    return measured.result
                break
        return self.measure_kernel(task.subject, task.inputs, task.rounds)

    def _device(self) -> str:
        try:
            return self.hello().device
        except Unavailable as error:
            _log.info("the GPU here is not known: %s", error)
            return ""

"""Measure code on the current GPU, in a process that may die."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mugraph.tune.messages import Agree, Agreed, Drop, Failure, Hello, InputSpec, Prepare, Replay, Reply, Subject, Timed
from mugraph.tune.process import ChildProcess
from mugraph.tune.statistics import Summary, summarise

# Seconds. A kernel that has not finished by then hangs; torch.compile's max-autotune compiles for minutes.
AGREE_S = 60.0
PREPARE_S = {"none": 60.0, "default": 180.0, "max-autotune-no-cudagraphs": 420.0}
REPLAY_S = 60.0
METHOD = "CUDA graph replay, cold L2 (inputs rotated over 4x the cache), median"


@dataclass(frozen=True, slots=True)
class Refused:
    """A subject without a time, and why (one sentence)."""

    reason: str


class Measurer:
    """One measuring process, restarted whenever a kernel breaks it. Use as a context manager."""

    def __init__(self, child: Callable[[], ChildProcess] = ChildProcess) -> None:
        self._child = child()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.close()

    def begin(self) -> None:
        """Start the process without waiting for it. Raises process.Unavailable."""
        self._child.begin()

    def hello(self) -> Hello:
        """Device and versions. Raises process.Unavailable."""
        return self._child.start()

    def measure_kernel(self, subject: Subject, inputs: Sequence[InputSpec], rounds: int = 20) -> Summary | Refused:
        """Microseconds of one launch. Says nothing of whether the results are right: the caller checks that (in
        another process) before it lets the time count."""
        return self.compare([subject], inputs, rounds)[subject.name]

    def measure_kernels(
        self, kernels: Sequence[tuple[Subject, tuple[InputSpec, ...]]], rounds: int = 20
    ) -> Iterator[Summary | Refused]:
        """Of several, in their order, each when it is asked for."""
        for subject, inputs in kernels:
            yield self.measure_kernel(subject, inputs, rounds)

    def agree(self, subject: Subject, reference: Subject, inputs: Sequence[InputSpec]) -> Agreed | Refused:
        """Whether two subjects give the same on the same inputs, in the precision of their outputs."""
        reply = self._child.ask(Agree(subject, reference, tuple(inputs)), AGREE_S)
        return reply if isinstance(reply, Agreed) else _refused(reply)

    def compare(
        self,
        subjects: Sequence[Subject],
        inputs: Sequence[InputSpec],
        rounds: int = 40,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Summary | Refused]:
        """Times of all subjects in one interleaved run; one that fails is Refused and the others go on."""
        results: dict[str, Summary | Refused] = {}
        ready: list[Subject] = []
        for subject in subjects:
            if progress is not None:
                progress(subject.name)
            reply = self._prepare(subject, ready, inputs, results)
            if isinstance(reply, Failure):
                results[subject.name] = _refused(reply)
            else:
                ready.append(subject)
        names = tuple(subject.name for subject in ready)
        if names:
            timed = self._child.ask(Replay(names, rounds), REPLAY_S + rounds)
            for name in names:
                results[name] = summarise(timed.samples[name]) if isinstance(timed, Timed) else _refused(timed)
            self._child.ask(Drop(names), REPLAY_S)
        return results

    def _prepare(
        self,
        subject: Subject,
        ready: list[Subject],
        inputs: Sequence[InputSpec],
        results: dict[str, Summary | Refused],
    ) -> Reply:
        """Prepare one more; when that costs the process, prepare the others again in the new one."""
        reply = self._child.ask(Prepare(subject, tuple(inputs)), PREPARE_S[subject.compiler])
        if isinstance(reply, Failure) and reply.fatal:
            for earlier in list(ready):
                again = self._child.ask(Prepare(earlier, tuple(inputs)), PREPARE_S[earlier.compiler])
                if isinstance(again, Failure):
                    ready.remove(earlier)
                    results[earlier.name] = _refused(again)
        return reply


def _refused(reply: Reply) -> Refused:
    return Refused(reply.reason if isinstance(reply, Failure) else "the measuring process answered out of turn")

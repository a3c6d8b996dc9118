"""Measure kernels on the current GPU, in a process that may die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mugraph.ir.program import TensorProgram
from mugraph.tune.messages import (
    Agree,
    Check,
    Checked,
    Drop,
    Failure,
    Hello,
    InputSpec,
    Prepare,
    Replay,
    Reply,
    Subject,
    Timed,
)
from mugraph.tune.process import ChildProcess
from mugraph.tune.statistics import Summary, summarise

# Seconds. A kernel that has not finished by then hangs; torch.compile's max-autotune compiles for minutes.
CHECK_S = 60.0
PREPARE_S = {"none": 60.0, "default": 180.0, "max-autotune-no-cudagraphs": 420.0}
REPLAY_S = 60.0
METHOD = "CUDA graph replay, cold L2 (inputs rotated over 4x the cache), median"


@dataclass(frozen=True, slots=True)
class Refused:
    """A subject without a time, and why (one sentence)."""

    reason: str


@dataclass(frozen=True, slots=True)
class KernelTime:
    """A checked kernel's time, with the largest relative error against float64 that was found on the device and the
    same error of PyTorch's operators in the program's precision."""

    time: Summary
    error: float
    eager_error: float | None


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

    def hello(self) -> Hello:
        """Device and versions. Raises process.Unavailable."""
        return self._child.start()

    def measure_kernel(
        self,
        subject: Subject,
        program: TensorProgram,
        names: Sequence[str],
        outputs: Sequence[str],
        inputs: Sequence[InputSpec],
        rounds: int = 20,
    ) -> KernelTime | Refused:
        """Check the kernel against float64 on the device, then time it.

        names, outputs: the program's tensors in the order the launcher takes and returns them
        """
        checked = self._child.ask(Check(subject, program, tuple(names), tuple(outputs)), CHECK_S)
        if not isinstance(checked, Checked):
            return _refused(checked)
        if not checked.passed:
            return Refused(f"wrong on the device: error {checked.error:.2e}, allowed {checked.limit:.2e}")
        prepared = self._child.ask(Prepare(subject, tuple(inputs)), PREPARE_S[subject.compiler])
        if isinstance(prepared, Failure):
            return _refused(prepared)
        timed = self._child.ask(Replay((subject.name,), rounds), REPLAY_S)
        self._child.ask(Drop((subject.name,)), REPLAY_S)
        if not isinstance(timed, Timed):
            return _refused(timed)
        return KernelTime(summarise(timed.samples[subject.name]), checked.error, checked.eager)

    def agree(self, subject: Subject, reference: Subject, inputs: Sequence[InputSpec]) -> Checked | Refused:
        """Whether two subjects give the same on the same inputs, in the precision of their outputs."""
        reply = self._child.ask(Agree(subject, reference, tuple(inputs)), CHECK_S)
        return reply if isinstance(reply, Checked) else _refused(reply)

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
            reply = self._prepare(subject, ready, inputs)
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

    def _prepare(self, subject: Subject, ready: list[Subject], inputs: Sequence[InputSpec]) -> Reply:
        """Prepare one more; when that costs the process, prepare the others again in the new one."""
        reply = self._child.ask(Prepare(subject, tuple(inputs)), PREPARE_S[subject.compiler])
        if isinstance(reply, Failure) and reply.fatal:
            for earlier in list(ready):
                again = self._child.ask(Prepare(earlier, tuple(inputs)), PREPARE_S[earlier.compiler])
                if isinstance(again, Failure):
                    ready.remove(earlier)
        return reply


def _refused(reply: Reply) -> Refused:
    return Refused(reply.reason if isinstance(reply, Failure) else "the measuring process answered out of turn")

"""A stand-in for the device and the processes that measure on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from mugraph.stopwatch import Stopwatch
from mugraph.targets import TARGETS
from mugraph.tune.device import Device
from mugraph.tune.measure import Compared
from mugraph.tune.messages import Agreed, Hello, Subject
from mugraph.tune.statistics import Summary
from mugraph.verification.float_results import FloatResult, LoweringResult

TARGET = TARGETS["h100"]
HERE = Device("a GPU", "gpu", TARGET, TARGET.capability, "1")


@dataclass
class Machine:
    """Stands for everything that runs elsewhere. log: what it was asked, in order. busy: how often PyTorch's compilers
    are still to be found at work. seconds: on a clock that goes while something is measured. keeps: whether calls keep
    float32's digits, where they may take TF32; asked: of which it was asked"""

    log: list[str] = field(default_factory=list[str])
    busy: int = 0
    compiled: list[Subject] = field(default_factory=list[Subject])
    compared: list[Subject] = field(default_factory=list[Subject])
    applied: Any = None
    spent: Stopwatch = field(default_factory=Stopwatch)
    seconds: float = 0.0
    times_itself: bool = True
    is_ready: bool = True
    keeps: bool | None = False
    asked: list[Subject] = field(default_factory=list[Subject])

    def release(self) -> None:
        self.busy = 0
        self.log.append("peers given up")

    @property
    def measurer(self) -> Machine:
        return self

    def begin(self, subjects: Sequence[Subject] = (), inputs: object = None) -> None:
        if subjects:
            self.log.append("peers begin")
            self.busy = 3

    def done(self, timeout_s: float | None = None) -> bool:
        self.busy = max(0, self.busy - 1)
        self.log.append("peers done" if not self.busy else "peers compile")
        return not self.busy

    def compile(self, subjects: Sequence[tuple[Subject, Any]]) -> list[None]:
        self.log.append("compiles")
        self.compiled += [subject for subject, _ in subjects]
        return [None] * len(subjects)

    def in_order(self, subjects: Sequence[tuple[Subject, Any]]) -> Iterator[None]:
        yield from self.compile(subjects)

    def ask(self, subjects: Sequence[tuple[Subject, Any]]) -> None:
        self.compile(subjects)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def _measured(self, us: float) -> Summary:
        assert not self.busy, "something was measured while PyTorch's compilers were at work"
        self.log.append("measures")
        self.seconds += 100
        return Summary(us, 0.01, 9)

    def measure_kernels(self, kernels: Sequence[tuple[Subject, Any]], rounds: int, **_: object) -> Iterator[Summary]:
        return (self._measured(2.0 + 1e-4 * len(subject.source)) for subject, _ in kernels)

    def measure_kernel(self, subject: Subject, inputs: object, rounds: int = 9) -> Summary:
        return self._measured(10.0)

    def compare(self, subjects: Sequence[Subject], inputs: object, **_: object) -> dict[str, Summary]:
        return {subject.name: self._measured(2.0) for subject in subjects}

    def hello(self) -> Hello:
        return Hello("a GPU", {}, 1 << 20)

    def agree(self, *_: object) -> Agreed:
        return Agreed(True, 0.0, 1e-3)

    def keeps_digits(self, subject: Subject, inputs: object) -> bool | None:
        self.asked.append(subject)
        return self.keeps

    def compare_called(
        self, subjects: Sequence[Subject], inputs: object, ours: str, applied: object, **_: object
    ) -> Compared:
        self.compared, self.applied = list(subjects), applied
        found = {subject.name: self._measured(5.0 if subject.name == ours else 12.0) for subject in subjects}
        return Compared(dict(found), dict(found))

    def until(self, _: float) -> AbstractContextManager[None]:
        return nullcontext()

    def test_lowering(self, *_: object) -> LoweringResult:
        return LoweringResult(True)

    def test_kernel(self, *_: object) -> FloatResult:
        return FloatResult(True, None, 1e-3, 1e-3, "a GPU")

"""What is done while PyTorch's compilers work on the device, and what waits for them. Processes are stood in for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.events import RegionResult
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.solve.filetime import FileTime
from mugraph.solve.job import RegionJob
from mugraph.solve.programs import ProgramText
from mugraph.solve.tools import Tools
from mugraph.stopwatch import Stopwatch
from mugraph.store import Store
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import Device
from mugraph.tune.measure import Compared
from mugraph.tune.messages import Agreed, Hello, Subject
from mugraph.tune.statistics import Summary
from mugraph.verification.float_test import FloatResult

TARGET = TARGETS["h100"]
HERE = Device("a GPU", "gpu", TARGET, TARGET.capability, "1")
TEXT = """\
import torch


# mugraph: x=f16[64, 64], w=f16[64, 48]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)
"""


@dataclass
class Machine:
    """Stands for everything that runs elsewhere. log: what it was asked, in order. busy: how often PyTorch's compilers
    are still to be found at work. seconds: on a clock that goes while something is measured"""

    log: list[str] = field(default_factory=list[str])
    busy: int = 0
    compiled: list[Subject] = field(default_factory=list[Subject])
    compared: list[Subject] = field(default_factory=list[Subject])
    applied: Any = None
    spent: Stopwatch = field(default_factory=Stopwatch)
    seconds: float = 0.0

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

    def _measured(self, us: float) -> Summary:
        assert not self.busy, "something was measured while PyTorch's compilers were at work"
        self.log.append("measures")
        self.seconds += 100
        return Summary(us, 0.01, 9)

    def measure_kernels(self, kernels: Sequence[tuple[Subject, Any]], rounds: int) -> Iterator[Summary]:
        return (self._measured(2.0 + 0.1 * len(subject.source)) for subject, _ in kernels)

    def measure_kernel(self, subject: Subject, inputs: object, rounds: int = 9) -> Summary:
        return self._measured(10.0)

    def compare(self, subjects: Sequence[Subject], inputs: object, **_: object) -> dict[str, Summary]:
        return {subject.name: self._measured(2.0) for subject in subjects}

    def hello(self) -> Hello:
        return Hello("a GPU", {}, 1 << 20)

    def agree(self, *_: object) -> Agreed:
        return Agreed(True, 0.0, 1e-3)

    def compare_called(
        self, subjects: Sequence[Subject], inputs: object, ours: str, applied: object, **_: object
    ) -> Compared:
        self.compared, self.applied = list(subjects), applied
        found = {subject.name: self._measured(5.0 if subject.name == ours else 12.0) for subject in subjects}
        return Compared(dict(found), dict(found))

    def test_kernel(self, *_: object) -> FloatResult:
        return FloatResult(True, None, 1e-3, 1e-3, "a GPU")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("waiting") / "model.py"
    path.write_text(TEXT)
    return trace_file(path)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def solved(trace: Trace, machine: Machine, store: Store | None = None) -> RegionResult:
    it = cast(Any, machine)
    time = FileTime(50.0, lambda: machine.seconds)
    tools = Tools(TARGET, it, compiled=True, measurer=it, pool=it, peers=it, file_time=time)
    options = Options(budget_s=0.5, max_kernels=1)
    job = RegionJob(
        0,
        trace.regions[0],
        Scope(()),
        HERE,
        tools,
        options,
        store,
        lambda: False,
        Path(trace.path),
        program=ProgramText(TEXT),
    )
    steps = job.result()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert not time.is_over, "what is measured does not count"
            return end.value


def test_kernels_compile_while_pytorch_does_and_are_measured_after_it(trace: Trace, machine: Machine) -> None:
    result = solved(trace, machine)
    assert result.status == "improved", result.reason
    first = [said for number, said in enumerate(machine.log) if said != machine.log[number - 1]]
    assert first[:5] == ["peers begin", "compiles", "peers compile", "peers done", "compiles"]
    assert machine.log.index("peers done") < machine.log.index("measures")


def test_what_is_compared_is_the_text_that_a_program_imports(trace: Trace, machine: Machine) -> None:
    """Its kernels are compiled once for both clocks, and by other processes."""
    solved(trace, machine)
    ours = next(subject for subject in machine.compared if subject.name == "mugraph")
    assert ours.source == machine.applied.module_text
    assert dict(ours.beside) == dict(machine.applied.beside)
    kernel = machine.compiled[-1]
    (line,) = [
        number for number, line in enumerate(ours.source.split("\n")) if line.startswith("def product_fused_kernel")
    ]
    assert kernel.source.split("\n")[line].startswith("def product_fused_kernel")


def test_what_is_known_is_compared_with_nothing(trace: Trace, machine: Machine, tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        first = solved(trace, machine, store)
        machine.log.clear()
        again = solved(trace, machine, store)
    assert again.timing == first.timing
    assert machine.log == []


def test_a_kernel_that_is_known_and_has_no_time_here_is_compared(
    trace: Trace, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path / "store") as store:
        with monkeypatch.context() as patch:
            patch.setattr("mugraph.solve.timing.timing_key", lambda *_: "another device")
            solved(trace, machine, store)
        machine.log.clear()
        solved(trace, machine, store)
    assert machine.log[:2] == ["peers begin", "compiles"]
    assert machine.log.count("peers begin") == 1
    assert machine.log[-1] == "measures"

"""What is done while PyTorch's compilers work on the device, and what waits for them. Processes are stood in for."""

from __future__ import annotations

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
from mugraph.store import Store
from mugraph.trace.tracer import trace_file
from mugraph.tune.statistics import Summary

from tests.engine.solve.machine import HERE, TARGET, Machine

TEXT = """\
import torch


# mugraph: x=f16[64, 64], w=f16[64, 48]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)
"""


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
    # What is measured first is PyTorch alone, which the kernels have to be faster than.
    assert first[:6] == ["peers begin", "compiles", "peers compile", "peers done", "measures", "compiles"]
    assert machine.log.index("peers done") < machine.log.index("measures")


def test_a_kernel_that_is_far_slower_is_no_gain_as_measured(
    trace: Trace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing else is measured for the region, and what was is what is said: now, and when it is known."""
    machine, store = Machine(), Store(tmp_path)
    monkeypatch.setattr(Machine, "measure_kernels", lambda self, kernels, **_: iter([Summary(42.0, 0.01, 9)] * 99))
    for _ in range(2):
        result = solved(trace, machine, store)
        assert result.status == "no-gain"
        assert result.reason == "on the device the kernel is slower than the code as it runs, 42.0 µs against 10.0"
        assert (result.timing.source, result.timing.speedup) == ("measured", pytest.approx(10 / 42))
        assert result.timing.peers_us == {"eager": 10.0}
        assert not machine.compared
    assert result.units[0].from_store


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

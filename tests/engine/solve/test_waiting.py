"""What is done while PyTorch's compilers work on the device, and what waits for them. Processes are stood in for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.events import RegionResult
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.protocol.settings import CompareWith
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.filetime import FileTime
from mugraph.solve.job import RegionJob
from mugraph.solve.programs import ProgramText
from mugraph.solve.tools import Tools
from mugraph.solve.waiting import PATIENCE_S, waited
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


@pytest.fixture
def machine() -> Machine:
    return Machine()


def solved(
    trace: Trace, machine: Machine, store: Store | None = None, peers: tuple[str, ...] | None = None
) -> RegionResult:
    """peers: that are timed, where a kernel has to be faster than the code as it runs alone"""
    it = cast(Any, machine)
    time = FileTime(50.0, lambda: machine.seconds)
    tools = Tools(TARGET, it, compiled=True, measurer=it, pool=it, peers=it, file_time=time,
                  compare_with="code" if peers is not None else "both", timed_peers=peers)  # fmt: skip
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
            assert peers is not None or not time.is_over, "what is measured does not count"
            return end.value


def test_kernels_compile_while_pytorch_does_and_are_measured_after_it(trace: Trace, machine: Machine) -> None:
    result = solved(trace, machine)
    assert result.status == "improved", result.reason
    first = [said for number, said in enumerate(machine.log) if said != machine.log[number - 1]]
    # What is measured first is PyTorch alone, which the kernels have to be faster than.
    assert first[:6] == ["peers begin", "compiles", "peers compile", "peers done", "measures", "compiles"]
    assert machine.log.index("peers done") < machine.log.index("measures")


TWO = """\
import torch


# mugraph: x=f32[4096, 4096]
def sorted_rows(x: torch.Tensor) -> torch.Tensor:
    y = torch.sort(torch.tanh(x * 2 + 1) * torch.sigmoid(x), dim=1)[0]
    return torch.tanh(torch.relu(y * 2) - y)
"""


def test_compilers_that_time_their_own_choices_come_after_search_units_that_are_measured_in_turn(
    trace: Trace, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(self: Machine, subjects: Any = (), inputs: object = None) -> None:
        self.log.append(f"begin {' '.join(subject.name for subject in subjects)}")

    path = tmp_path / "two.py"
    path.write_text(TWO)
    monkeypatch.setattr(Machine, "begin", begin)
    two = trace_file(path)
    assert len(solved(two, machine).units) == 2
    begun = [said for said in machine.log if said.startswith("begin e")]
    assert begun == ["begin eager torch.compile", "begin eager torch.compile max-autotune"]
    last = machine.log.index(begun[1])
    assert "measures" in machine.log[:last]
    alone = Machine()
    solved(trace, alone)
    assert [said for said in alone.log if said.startswith("begin e")] == ["begin eager torch.compile max-autotune"]


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


@dataclass
class Slow(Machine):
    """A compiler that is at work for `compiles_s`. It times nothing, so kernels may be measured meanwhile."""

    compiles_s: float = 1e9
    times_itself: bool = False
    is_ready: bool = False
    released: bool = False

    def done(self, timeout_s: float | None = None) -> bool:
        self.seconds += timeout_s or 0.0
        return self.released or self.seconds >= self.compiles_s

    def release(self) -> None:
        super().release()
        self.released = True

    def _measured(self, us: float) -> Summary:
        self.busy, before = 0, self.seconds
        found = super()._measured(us)
        self.seconds = before
        return found


def test_a_compiler_that_takes_too_long_is_left_out_and_the_kernel_is_offered(trace: Trace, tmp_path: Path) -> None:
    machine, store = Slow(), Store(tmp_path / "kept")
    result = solved(trace, machine, store, peers=("eager", "torch.compile"))
    assert result.status == "improved", result.reason
    assert [subject.name for subject in machine.compared] == ["eager", "mugraph"]
    assert "peers given up" in machine.log
    assert 50 * 1.25 <= machine.seconds < 50 * 1.25 + PATIENCE_S + 2
    assert solved(trace, Slow(compiles_s=0.0), store, peers=("eager", "torch.compile")).timing.peers_us.keys() == {
        "eager",
        "torch.compile",
    }, "what lacks a peer is not kept for other runs"


def test_a_compiler_that_is_done_soon_after_the_file_s_time_is_waited_for(trace: Trace) -> None:
    machine = Slow()
    machine.compiles_s = 55.0
    result = solved(trace, machine, peers=("eager", "torch.compile"))
    assert result.status == "improved", result.reason
    assert [subject.name for subject in machine.compared] == ["eager", "torch.compile", "mugraph"]
    assert "peers given up" not in machine.log


def test_what_a_kernel_has_to_be_faster_than_is_waited_for(trace: Trace) -> None:
    machine = Slow()
    machine.compiles_s = 500.0
    result = solved(trace, machine)
    assert result.status == "improved", result.reason
    assert [subject.name for subject in machine.compared] == ["eager", "torch.compile", "max-autotune", "mugraph"]


@pytest.mark.parametrize(
    ("times_itself", "ends", "compare_with", "waits"),
    [
        (False, True, "both", False),
        (False, False, "code", False),
        (True, True, "code", True),
        (False, False, "both", True),
    ],
)
def test_kernels_are_measured_beside_a_compiler_that_times_nothing_where_time_is_short(
    times_itself: bool, ends: bool, compare_with: CompareWith, waits: bool
) -> None:
    machine = Slow(times_itself=times_itself, compiles_s=100.0)
    tools = Tools(TARGET, cast(Any, machine), peers=cast(Any, machine), compare_with=compare_with)
    for _ in waited(tools, 0, lambda: False, Ending(1e9) if ends else NO_END):
        pass
    assert (machine.seconds >= 100.0) == waits
    assert machine.seconds > PATIENCE_S

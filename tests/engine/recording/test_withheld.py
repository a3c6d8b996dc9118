"""A region whose kernel would take none of the recorded calls is not offered, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mugraph.commands.common import Where
from mugraph.commands.optimize import optimize
from mugraph.ir.region import Region, Trace
from mugraph.pipeline import Options
from mugraph.recording.memory import Recorded, RecordedFunction, Recording, keep
from mugraph.recording.withheld import why_never_taken, withhold
from mugraph.trace.tracer import trace_file

SOURCE = """\
import torch

# mugraph: x=f16[16, 64], w=f16[64, 32]
def product(x, w, scale=1.0):
    return torch.nn.functional.silu(x @ w) * x[:, :32]

# mugraph: x=f32[16, 64]
def changed(x):
    x = x.t()
    return torch.softmax(x, -1) * x
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("withheld") / "file.py"
    path.write_text(SOURCE)
    return trace_file(path)


@pytest.fixture
def region(trace: Trace) -> Region:
    return next(one for one in trace.regions if one.function == "product")


def call(x: str = "f16[16, 64]", w: str = "f16[64, 32]", calls: int = 1, devices: Sequence[str] = ("cpu",)) -> Recorded:
    return Recorded({"x": x, "w": w}, devices=[*devices], calls=calls)


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([call(), call("f16[2, 64]")], None),
        ([call("f16[2, 64]", calls=12)], "in all 12 recorded calls x has shape (2, 64), the kernel is for (16, 64)"),
        ([call("f32[16, 64]")], "in the one recorded call x is f32, the kernel is for f16"),
        (
            [call("f16[2, 64]", calls=3), call("f16[1, 16, 64]", calls=5)],
            "in none of the 8 recorded calls does it fit: x has shape (1, 16, 64), the kernel is for (16, 64) (5); "
            "x has shape (2, 64), the kernel is for (16, 64) (3)",
        ),
        ([Recorded({"w": "f16[64, 32]"}, opaque={"x": "Lazy"}, calls=4)], None),  # it is not known
    ],
)
def test_why(region: Region, calls: list[Recorded], why: str | None):
    assert why_never_taken(region, calls) == (why and f"its kernel would never run: {why}")


def test_on_the_cpu_where_there_is_a_gpu(region: Region):
    why = why_never_taken(region, [call(calls=2)], gpu=True)
    assert why == "its kernel would never run: in all 2 recorded calls the tensors are on the CPU"
    assert why_never_taken(region, [call(devices=["cuda:0"])], gpu=True) is None


def test_a_gradient(region: Region):
    @dataclass(frozen=True)
    class Seen:
        """A recording that says so."""

        arguments: dict[str, str]
        devices: list[str]
        calls: int
        wants_gradient: bool

    calls = [Seen({"x": "f16[16, 64]"}, ["cpu"], 12, True)]
    assert why_never_taken(region, calls) == (  # type: ignore[arg-type]
        "its kernel would never run: all 12 recorded calls want a gradient"
    )


def test_an_argument_that_the_function_binds_anew_says_nothing(trace: Trace):
    calls = {"changed": [Recorded({"x": "f32[3, 3]"}, calls=1)], "product": [call("f16[3, 64]")]}
    before = {one.function: one.status for one in trace.regions}
    after = {one.function: one.status for one in withhold(trace, SOURCE, calls).regions}
    assert after == before | {"product": "unsupported"}
    assert withhold(trace, SOURCE, {}) == trace


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "file.py"
    path.write_text(SOURCE.partition("# mugraph: x=f32")[0])
    keep(path, Recording(str(path), {"product": RecordedFunction([call("f16[2, 64]", calls=12)])}))
    status = optimize(
        Where(path, None), replace(Options(), target="h100"), as_json=False, apply=False, verbose=False, use_store=False
    )
    said = " ".join(capsys.readouterr().out.split())
    assert status == 0
    assert "in all 12 recorded calls x has shape (2, 64), the kernel is for (16, 64)" in said

"""A region whose kernel would take none of the recorded calls is not offered, and says why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from mugraph.commands.common import Where
from mugraph.commands.optimize import optimize
from mugraph.ir.region import Region, Trace
from mugraph.ir.shares import share_words
from mugraph.pipeline import Options
from mugraph.recording.memory import (
    Recorded,
    RecordedFunction,
    Recording,
    Seen,
    keep,
    pictured,
    recorded,
    recorded_shapes,
    seen,
    shares,
)
from mugraph.recording.regions import shared
from mugraph.recording.withheld import Bindings, fitted, withhold
from mugraph.trace.tracer import trace_file

SOURCE = """\
import torch

# mugraph: x=f16[16, 64], w=f16[64, 32]
def product(x, w, scale=1.0):
    return torch.nn.functional.silu(x @ w) * x[:, :32]

# mugraph: x=f32[16, 64]
def changed(x):
    x = x.t()
    print(end="")
    return torch.softmax(x, -1) * x

# mugraph: x=f32[16, 64]
def changed_inside(x):
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


def why_never_taken(region: Region, calls: Sequence[Seen], *, gpu: bool = False) -> str | None:
    """What is said of a region with such recorded calls."""
    trace = Trace("file.py", regions=(region,))
    return withhold(trace, SOURCE, {region.function: calls}, gpu=gpu).regions[0].reason


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
    assert why_never_taken(region, [Seen(one) for one in calls]) == (why and f"its kernel would never run: {why}")


def test_on_the_cpu_where_there_is_a_gpu(region: Region):
    why = why_never_taken(region, [Seen(call(calls=2))], gpu=True)
    assert why == "its kernel would never run: in all 2 recorded calls the tensors are on the CPU"
    assert why_never_taken(region, [Seen(call(devices=["cuda:0"]))], gpu=True) is None


def test_a_gradient(region: Region):
    wanted = [Seen(msgspec.structs.replace(call(calls=12), gradients=True, wanted_of=["x"]))]
    assert why_never_taken(region, wanted) == ("its kernel would never run: all 12 recorded calls want a gradient")
    of_another = [Seen(msgspec.structs.replace(call(), gradients=True, wanted_of=["scale"]))]
    assert why_never_taken(region, of_another) is None


def test_strides(region: Region):
    transposed = Seen(msgspec.structs.replace(call(calls=3), strides={"x": [1, 16]}))
    assert why_never_taken(region, [transposed]) == (
        "its kernel would never run: in all 3 recorded calls x has strides (1, 16), the kernel is for (64, 1)"
    )
    assert why_never_taken(region, [transposed, Seen(call())]) is None, "of a recording that has none"
    assert why_never_taken(region, [Seen(msgspec.structs.replace(call(), strides={}))]) is None


def test_what_is_not_shown_is_as_in_calls_with_the_same_arguments(trace: Trace):
    region = next(one for one in trace.regions if one.function == "changed")
    calls = [Seen(Recorded({"x": f"f32[{rows}, 64]"}, calls=rows)) for rows in (16, 3)]
    found = fitted(region, calls, Bindings(SOURCE).before(region))
    assert (found.calls, found.of_calls) == (16, 19)
    assert found.others == {"the arguments are others (x: f32[3, 64])": 3}


MADE_BEFORE = """
import torch

# mugraph: x=f32[16, 64]
def one_size(x):
    x = x.t()
    print(end="")
    return torch.softmax(x, -1) * x

# mugraph: t=2..9, x=f32[t, 64]
def many_sizes(x):
    x = x.t()
    print(end="")
    return torch.softmax(x, -1) * x
"""


def test_what_is_not_shown_has_the_sizes_of_a_range(tmp_path: Path):
    (tmp_path / "file.py").write_text(MADE_BEFORE)
    one, many = trace_file(tmp_path / "file.py").regions
    assert many.dynamic is not None
    bound = Bindings(MADE_BEFORE).before(many)
    calls = [Seen(Recorded({"x": f"f32[{rows}, 64]"}, calls=rows)) for rows in (16, 9, 2, 10)]
    calls.append(Seen(Recorded({"x": "f16[9, 64]"}, calls=7)))
    first = fitted(one, calls, bound)
    assert (first.calls, first.of_calls) == (16, 44), "a kernel for one size takes the calls of this size"
    then = fitted(many, calls, bound, [one])
    assert then.calls == 9 + 2, "the calls of other sizes are left to the kernel for a range"
    assert then.others["another kernel for this code is asked first"] == 16
    assert then.others["the arguments are others (x: f32[10, 64])"] == 10
    assert then.others["the arguments are others (x: f16[9, 64])"] == 7


CALLED_IN_TWO_WAYS = """\
import torch

def scores(x, mask=None, mode="full"):
    y = x @ x.mT
    if mask is not None:
        y = y + mask
    if mode == "full":
        y = y * 2
    return torch.softmax(y, -1) @ x

if __name__ == "__main__":
    x = torch.ones(16, 16)
    for _ in range(5):
        scores(x)
    for _ in range(3):
        scores(x, torch.ones(16, 16))
    scores(x, mode="half")
"""


@pytest.mark.parametrize(
    ("traced", "fits", "others"),
    [
        ({"x": "f32[16, 16]"}, 5, "mask is a tensor, the kernel is for None (3)"),
        ({"x": "f32[16, 16]", "mask": "f32[16, 16]"}, 3, "mask is None, the kernel is for a tensor (6)"),
        ({"x": "f32[16, 16]", "mode": "'half'"}, 1, "mode is 'full', the kernel is for 'half' (5)"),
    ],
)
def test_how_many_calls_it_is_made_for(
    tmp_path: Path, record: Callable[..., object], traced: dict[str, str], fits: int, others: str
):
    """A kernel for one way of calling a function gains nothing in calls of another way."""
    path = tmp_path / "two.py"
    path.write_text(CALLED_IN_TWO_WAYS)
    record(sys.executable, "two.py")
    trace = trace_file(path, recorded_shapes={"scores": traced})
    trace = shared(trace, shares(path, CALLED_IN_TWO_WAYS), CALLED_IN_TWO_WAYS)
    calls = seen(path, CALLED_IN_TWO_WAYS)
    share = withhold(trace, CALLED_IN_TWO_WAYS, calls).shares[0]
    seconds = {("mask" in one.arguments, one.arguments.get("mode")): one.seconds for one in recorded(path)["scores"]}
    assert (share.fits, share.of, share.others) == (fits, 9, others)
    assert share.taken == pytest.approx(seconds["mask" in traced, traced.get("mode")] / sum(seconds.values()))
    assert share.overall(2.0) == pytest.approx(1 / (1 - share.part * share.taken / 2))
    assert f"made for {fits} of 9 recorded calls; in others {others}" in share_words(share, 2.0)


MODULE = """\
import sys
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ModuleList([nn.Linear(64, 32)])
    def forward(self, x):
        return torch.nn.functional.silu(self.up[0](x)) * x[:, :32]

class Gates(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.gates = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])
        self.gates[0].requires_grad_(not frozen)
    def forward(self, x):
        for gate in self.gates:
            x = torch.nn.functional.silu(gate(x)) * x
            print(end="")
        return x

def turned(x, w):
    return torch.nn.functional.silu(x @ w) * x[:, :32]

if __name__ == "__main__":
    x, gate = torch.ones(16, 64), Gate()
    gate(x)
    for _ in range(2):
        gate(x).sum().backward()
    for _ in range(2):
        Gates(frozen=sys.argv[1] == "frozen")(x)
    with torch.no_grad():
        turned(torch.ones(64, 16).t(), torch.ones(64, 32))
    turned(torch.ones(16, 64), torch.ones(64, 32, requires_grad=True))
"""


@pytest.mark.parametrize("frozen", ["frozen", "no"])
def test_what_a_run_has_shown(tmp_path: Path, record: Callable[..., object], frozen: str):
    """A module that is trained, of whose tensors no argument is one; one that a loop goes through; strides."""
    path = tmp_path / "trained.py"
    path.write_text(MODULE)
    record(sys.executable, "trained.py", frozen)
    calls = seen(path, MODULE)
    traced = trace_file(path, recorded_shapes=recorded_shapes(path, MODULE), pictures=pictured(path, MODULE))
    why = {one.function: one.reason for one in withhold(traced, MODULE, calls).regions}
    assert why["Gate.forward"] == "its kernel would never run: all 3 recorded calls want a gradient"
    in_the_loop = "its kernel would never run: all 2 recorded calls want a gradient"
    assert why["Gates.forward"] == (in_the_loop if frozen == "no" else None), "the first gate may be run"
    assert len(calls["turned"]) == 2
    by_strides = {one.call.strides == {"x": [1, 16]}: one.call for one in calls["turned"]}
    assert (by_strides[True].wanted_of, by_strides[False].wanted_of) == ([], ["w"])


def test_an_argument_that_the_function_binds_anew_says_nothing(trace: Trace):
    other = Seen(Recorded({"x": "f32[3, 3]"}, calls=1))
    calls = {"changed": [other], "changed_inside": [other], "product": [Seen(call("f16[3, 64]"))]}
    before = {one.function: one.status for one in trace.regions}
    after = {one.function: one.status for one in withhold(trace, SOURCE, calls).regions}
    assert after == before | {"product": "unsupported", "changed_inside": "unsupported"}
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


STEPS_OF_A_LOOP = """\
import torch

WEIGHTS = [torch.rand(24), torch.rand(40)]

# mugraph: x=f32[16, 8]
def spread(x):
    found = []
    for weight in WEIGHTS:
        wide = x[:, :1] * weight
        found.append(torch.softmax(wide, -1) * wide)
    return found

# mugraph: y=f32[16, 8]
def walked(y):
    rows, found = iter(WEIGHTS), {}
    while (row := next(rows, None)) is not None:
        found[len(row)] = torch.tanh(y[:, :1] * row) * row
    return found
"""


@pytest.mark.parametrize(("function", "argument"), [("spread", "x"), ("walked", "y")])
def test_each_step_of_a_loop_may_be_in_another_way(tmp_path: Path, function: str, argument: str):
    """One call runs both: the kernel for the first width leaves the second one to the next."""
    path = tmp_path / "file.py"
    path.write_text(STEPS_OF_A_LOOP)
    traced = trace_file(path)
    calls = {function: [Seen(Recorded({argument: "f32[16, 8]"}, calls=5))]}
    regions = [one for one in withhold(traced, STEPS_OF_A_LOOP, calls).regions if one.function == function]
    assert len(regions) == 2
    assert regions[0].range == regions[1].range
    assert [(one.status, one.reason) for one in regions] == [(None, None), (None, None)]

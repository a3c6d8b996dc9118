"""Measuring on a real GPU: cold times are believable, broken kernels cost nothing but themselves, peers are timed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil
import pytest
from mugraph.events import Done
from mugraph.pipeline import Options, run
from mugraph.research import grid
from mugraph.research.points import read
from mugraph.targets import TARGETS
from mugraph.tune.against import WITHOUT_GUARDS, against_peers, peer_subjects
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import Agreed, InputSpec, Ok, Prepare, Subject
from mugraph.tune.peers import Peers
from mugraph.tune.process import COMPILER, ChildProcess
from mugraph.tune.statistics import Summary

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(900),
]

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
COPY = (
    HEAD
    + """\
@triton.jit
def copy_kernel(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs OFFSET, tl.load(x_ptr + offs, mask=offs < N), mask=offs < N)


def launch_copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, N=x.numel(), BLOCK=1024)
    return out


def eager(x):
    return x.clone()


def double(x):
    return x * 2
"""
)
GOOD = COPY.replace(" OFFSET", "")
ILLEGAL = COPY.replace(" OFFSET", " + 1099511627776")
MIB = 1 << 20


def half(mib: int) -> tuple[InputSpec, ...]:
    return (InputSpec((mib * MIB // 2,), (1,), "f16"),)


def test_large_copy_runs_at_the_bandwidth_of_memory_not_of_the_cache():
    with Measurer() as measurer:
        found = measurer.measure_kernel(Subject("copy", GOOD, "launch_copy"), half(32))
        l2 = measurer.hello().l2
    assert isinstance(found, Summary)
    moved = 2 * 32 * MIB
    assert l2 > 32 * MIB  # a hot copy would fit: the cold one must not be faster than memory
    assert 0.5e6 < moved / found.median_us < 5.0e6
    assert found.error_us < 0.05 * found.median_us


def test_small_kernel_costs_about_a_launch():
    with Measurer() as measurer:
        found = measurer.measure_kernel(Subject("copy", GOOD, "launch_copy"), (InputSpec((4096,), (1,), "f16"),))
    assert isinstance(found, Summary)
    assert 0.5 < found.median_us < 6


def test_illegal_access_is_refused_and_the_next_kernel_runs():
    with Measurer() as measurer:
        broken = measurer.measure_kernel(Subject("broken", ILLEGAL, "launch_copy"), half(1))
        good = measurer.measure_kernel(Subject("good", GOOD, "launch_copy"), half(1))
    assert isinstance(broken, Refused)
    assert isinstance(good, Summary)


def test_agreement_is_of_values():
    with Measurer() as measurer:
        same = measurer.agree(Subject("ours", GOOD, "launch_copy"), Subject("eager", GOOD, "eager"), half(1))
        other = measurer.agree(Subject("ours", GOOD, "launch_copy"), Subject("double", GOOD, "double"), half(1))
    assert isinstance(same, Agreed)
    assert same.passed
    assert same.error == 0.0
    assert isinstance(other, Agreed)
    assert not other.passed


def test_torch_compile_is_timed_in_the_same_run():
    subjects = [
        Subject("eager", GOOD, "double"),
        Subject("torch.compile", GOOD, "double", "default"),
        Subject("max-autotune", GOOD, "double", "max-autotune-no-cudagraphs"),
    ]
    with Measurer() as measurer:
        found = measurer.compare(subjects, half(8))
    assert all(isinstance(result, Summary) for result in found.values()), found


def test_a_call_costs_more_than_its_kernel():
    """Wall time of a call in eager mode has the launch in it; a large copy's is that of the device all the same."""
    with Measurer() as measurer:
        small = measurer.compare_called([Subject("ours", GOOD, "launch_copy")], half(1), "ours", None)
        large = measurer.compare_called([Subject("ours", GOOD, "launch_copy")], half(512), "ours", None)
    for found in (small, large):
        assert isinstance(found.device["ours"], Summary)
        assert isinstance(found.called["ours"], Summary)
        assert found.not_entered is not None
    assert small.called["ours"].median_us > 1.5 * small.device["ours"].median_us  # type: ignore[union-attr]
    assert large.called["ours"].median_us < 1.3 * large.device["ours"].median_us  # type: ignore[union-attr]


def test_peers_that_compile_early_are_those_that_are_compared():
    subjects = peer_subjects(Subject("eager", GOOD, "double"), ["eager", "torch.compile"])
    with contextlib.closing(Peers(Measurer())) as early:
        early.begin(subjects, half(8))
        assert early.done(300)
        found = against_peers(
            Subject("ours", GOOD, "double"), subjects[0], half(8), early.measurer, names=["eager", "torch.compile"]
        )
    assert set(found.on_device.peers) == set(found.as_called.peers) == {"eager", "torch.compile"}
    assert found.on_device.gain == 1.0, "a subject is as fast as itself"


def test_compiled_ahead_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The warm-up's cache key must be the launch's: measuring after it compiles nothing."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    subject = Subject("copy", GOOD, "launch_copy")
    with CompilePool(workers=1) as pool:
        assert pool.compile([(subject, half(1))]) == [None]
    compiled = sorted(tmp_path.rglob("*.cubin"))
    assert len(compiled) == 1
    with Measurer() as measurer:
        assert isinstance(measurer.measure_kernel(subject, half(1)), Summary)
    assert sorted(tmp_path.rglob("*.cubin")) == compiled


MODEL = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[8, 4096], w1=f16[4096, 4096], w2=f16[4096, 4096]
def gated_mlp(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w1) * (x @ w2)
"""


MODULE = """\
import torch
from torch import nn


# mugraph: x=f16[16, 4096]
class NormLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(4096, eps=1e-6, dtype=torch.float16)
        self.linear = nn.Linear(4096, 6144, bias=False, dtype=torch.float16)

    def forward(self, x):
        return self.linear(self.norm(x))
"""


def test_a_module_is_called_with_its_own_guards(tmp_path: Path):
    path = tmp_path / "norm.py"
    path.write_text(MODULE)
    result = next(event.result for event in run(path, None, Options()) if isinstance(event, Done))
    (region,) = result.regions
    assert region.timing.as_called is not None, region.reason
    assert WITHOUT_GUARDS not in region.timing.as_called.method


def test_only_the_code_as_it_runs_is_compared_with_where_that_is_asked(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    options = Options(compare_with="code")
    result = next(event.result for event in run(path, None, options) if isinstance(event, Done))
    assert set(result.regions[0].timing.peers_us) == {"eager"}


def test_the_grid_is_measured_and_the_rates_fitted(tmp_path: Path):
    """A few of its programs; `python -m mugraph.research.baseline measure FILE` does them all."""
    out = tmp_path / "points.json"
    assert grid.measure(out, 20.0) is None
    points = read(out)
    assert points.points
    assert all({"eager"} <= set(point.us) == set(point.called_us) for point in points.points)
    assert points.target in TARGETS


def test_gated_mlp_is_measured_and_faster(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    result = next(event.result for event in run(path, None, Options()) if isinstance(event, Done))
    assert result.errors == ()
    (region,) = result.regions
    timing = region.timing
    assert timing.source == "measured"
    assert set(timing.peers_us) == {"eager", "torch.compile", "max-autotune"}
    assert region.status == "improved", region.reason
    assert timing.speedup is not None
    assert timing.speedup > 1.1
    assert timing.as_called is not None
    assert WITHOUT_GUARDS not in timing.as_called.method, "its own guard was called"
    assert set(timing.as_called.peers_us) == {"eager", "torch.compile", "max-autotune"}
    assert timing.gains
    assert {"search", "measuring", "compilation"} <= region.spent_s.keys()
    assert region.plan is not None
    assert result.device.name in (next(iter(region.plan.steps)).verdict.float_device or "")  # type: ignore[union-attr]


def test_pytorchs_processes_are_up_first_and_end_with_theirs():
    others = set(psutil.Process().children(recursive=True))  # of tests before this one
    with ChildProcess(COMPILER) as child:
        assert isinstance(child.ask(Prepare(Subject("eager", GOOD, "double"), tuple(half(8))), 120), Ok)
        below = set(psutil.Process().children(recursive=True)) - others
        compiling = [one for one in below if any("compile_worker" in word for word in one.cmdline())]
        assert compiling
    _, left = psutil.wait_procs(compiling, timeout=30)
    assert left == []


CONVOLVED = """\
import torch
import torch.nn.functional as F


def plain(x, weight):
    return F.conv3d(x, weight)
"""


def volume(strides: tuple[int, ...]) -> InputSpec:
    return InputSpec((128, 3, 24, 32, 32), strides, "f32")


def test_a_convolution_of_few_channels_keeps_float32s_digits_in_the_usual_order():
    """cuDNN of 2026 on an H200, with TF32 allowed: error 1.6e-7 in the usual order, 2.9e-4 channels last."""
    weight = InputSpec((24, 3, 3, 3, 3), (81, 27, 9, 3, 1), "f32")
    usual, last = volume((73728, 24576, 1024, 32, 1)), volume((73728, 1, 3072, 96, 3))
    subject = Subject("convolved", CONVOLVED, "plain", tf32=("cudnn",))
    with Measurer() as measurer:
        assert measurer.keeps_digits(subject, (usual, weight)) is True
        assert measurer.keeps_digits(subject, (last, weight)) is False

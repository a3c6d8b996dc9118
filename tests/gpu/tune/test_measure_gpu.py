"""Measuring on a real GPU: cold times are believable, broken kernels cost nothing but themselves, peers are timed."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done
from mugraph.pipeline import Options, run
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import Agreed, InputSpec, Subject
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
    assert region.plan is not None
    assert result.device.name in (next(iter(region.plan.steps)).verdict.float_device or "")  # type: ignore[union-attr]

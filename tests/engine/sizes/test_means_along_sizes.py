"""A mean along an axis whose size varies: how many elements there are is counted by the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.proved import varying_of
from mugraph.sizes.table import at_sizes
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.tune.device import detect, resolve

from tests.engine.sizes.decoding import run

CODE = """\
import torch


# mugraph: t=2..300, x=f32[3, t, 32], g=f32[32]
def pooled(x, g):
    return torch.tanh(x).mean(1) * g
"""
RUN = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import code_, kernels
torch.manual_seed(0)
for n in (2, 3, 7, 64, 177, 300):
    given = {{"x": torch.randn(3, n, 32), "g": torch.randn(32)}}
    torch.testing.assert_close(kernels.launch_{kernel}({inputs}), code_.pooled(**given), rtol=1e-5, atol=1e-6)
print("right")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("means")
    (folder / "code_.py").write_text(CODE)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> tuple[TensorProgram, KernelSource]:
    device = detect()
    options = Options(target="h100", budget_s=4.0, measure=False)
    events = run_trace(trace_file(folder / "code_.py"), device, resolve("h100", device), options, None)
    (one,) = next(event.result for event in events if isinstance(event, Done)).regions
    (unit,) = one.units
    assert unit.solution is not None, one.region.reason
    return unit.unit.program, unit.solution.source


def test_it_is_one_kernel_proved_for_all_sizes(found: tuple[TensorProgram, KernelSource]) -> None:
    program, source = found
    assert all(kernel.library is None for kernel in source.every)
    verdict = check_ranges(program, source, varying_of(program))
    assert verdict.passed, verdict.reason


def test_it_is_right_at_other_sizes(found: tuple[TensorProgram, KernelSource], folder: Path) -> None:
    _, source = found
    inputs = ", ".join(f"given[{tensor.name!r}]" for tensor in source.inputs)
    run(RUN.format(folder=str(folder), kernel=source.name, inputs=inputs), source, folder)


@pytest.mark.parametrize("new", ["1 <= offs_k", "0 < offs_k", "offs_k <= 100"])
def test_another_count_is_refused(found: tuple[TensorProgram, KernelSource], new: str) -> None:
    program, source = found
    text = source.standalone()
    assert "0 <= offs_k" in text, text
    names = [[one.name for one in tensors] for tensors in (source.inputs, source.outputs)]
    small, _ = at_sizes(program, [], {**program.sizes, "k": 133})
    changed = text.replace("0 <= offs_k", new)
    assert check_text(small, text, f"launch_{source.name}", *names).passed
    assert not check_text(small, changed, f"launch_{source.name}", *names).passed

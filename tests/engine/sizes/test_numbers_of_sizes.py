"""Variances, norms and other numbers that depend on a size: kernels are right at sizes that no test of theirs drew."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mugraph.events import Done
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.proved import varying_of
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.tune.device import detect, resolve

from tests.engine.sizes.decoding import run

CODE = """\
import math

import torch
import torch.nn.functional as F


# mugraph: t=2..300, x=f32[3, t, 32], g=f32[32]
def spread(x, g):
    return torch.tanh(x).var(1) * g


# mugraph: t=1..300, x=f32[3, 32, t], w=f32[32], b=f32[32]
def grouped(x, w, b):
    return F.silu(F.group_norm(x, 4, w, b))


# mugraph: t=1..300, x=f32[3, t, 32]
def share(x):
    return torch.tanh(x).sum(1) / x.shape[1]


# mugraph: t=1..300, q=f32[4, 8, 32], k=f32[4, t, 32]
def scaled(q, k):
    return torch.softmax(q @ k.mT / math.sqrt(k.shape[1]), -1)
"""
RUN = """\
import importlib, sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import code_
torch.manual_seed(0)
for function, (kernel, inputs) in {kernels!r}.items():
    launch = getattr(importlib.import_module("kernels_" + function), "launch_" + kernel)
    for n in (2, 3, 7, 64, 177, 300):
        x = torch.randn((3, 32, n) if function == "grouped" else (3, n, 32))
        given = {{"x": x, "q": torch.randn(4, 8, 32), "k": torch.randn(4, n, 32)}}
        given |= {{name: torch.randn(32) for name in "gwb"}}
        want = getattr(code_, function)(**{{name: given[name] for name in {functions!r}[function]}})
        torch.testing.assert_close(launch(*(given[name] for name in inputs)), want, rtol=1e-4, atol=2e-5)
print("right")
"""
FUNCTIONS = {
    node.name: [argument.arg for argument in node.args.args]
    for node in ast.parse(CODE).body
    if isinstance(node, ast.FunctionDef)
}

Found = dict[str, tuple[TensorProgram, KernelSource]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "code_.py").write_text(CODE)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> Found:
    device = detect()
    options = Options(target="h100", budget_s=4.0, measure=False)
    events = run_trace(trace_file(folder / "code_.py"), device, resolve("h100", device), options, None)
    made: Found = {}
    for one in next(event.result for event in events if isinstance(event, Done)).regions:
        (unit,) = one.units
        assert unit.solution is not None, one.region.reason
        made[one.region.function] = unit.unit.program, unit.solution.source
    return made


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_one_kernel_proved_for_all_sizes(found: Found, function: str) -> None:
    program, source = found[function]
    assert all(kernel.library is None for kernel in source.every)
    verdict = check_ranges(program, source, varying_of(program))
    assert verdict.passed, verdict.reason


def test_they_are_right_at_other_sizes(found: Found, folder: Path) -> None:
    kernels: dict[str, tuple[str, list[str]]] = {}
    for function, (_, source) in found.items():
        (folder / f"kernels_{function}.py").write_text(source.standalone())
        kernels[function] = source.name, [tensor.name for tensor in source.inputs]
    _, source = found["share"]
    run(RUN.format(folder=str(folder), kernels=kernels, functions=FUNCTIONS), source, folder)


REFUSED = """\
import math

import torch


# mugraph: t=2..300, x=f32[3, t, 32]
def by_logarithm(x):
    return torch.tanh(x).sum(1) * math.log(x.shape[1])


# mugraph: t=1..300, x=f32[3, t, 32]
def too_few(x):
    return torch.tanh(x).var(1)
"""


def test_others_are_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "code_.py").write_text(REFUSED)
    reasons = {region.function: region.reason for region in trace_file(tmp_path / "code_.py").regions}
    assert "mul in line 8 is given a number that is computed from it" in str(reasons["by_logarithm"])

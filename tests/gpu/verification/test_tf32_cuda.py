"""TF32 on a GPU: kernels that take it are as near as cuBLAS and cuDNN are with the setting on, and are refused where
the program has it off; without rounding they would be twice as far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from mugraph.codegen.lower import lower
from mugraph.ir.block import TF32, BlockGraph
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Tf32
from mugraph.ir.program import TensorProgram
from mugraph.ir.text import parse_program
from mugraph.search.run import Search
from mugraph.search.schedules.sizes import schedules
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.trace.run.tf32 import is_set, take
from mugraph.verification.float_test import FloatTester

pytestmark = pytest.mark.gpu
TARGET = TARGETS["h100"]
PRODUCT = """\
program product
  axes b=512, h=1024, n=512
  tensor x f32[b, h]
  tensor w f32[{weight}]
  x[b, h] = load(x)
  w[h, n] = load(w)
  z[b, n]{mark} = dot(x, w, over=h)
  output z -> z f32[b, n]
"""
CONVOLUTION = """\
program convolved
  axes c=32, r=3, s=3, b=4, k=64, p=32, q=32
  tensor x f32[b, c, window p over r pad 1, window q over s pad 1]
  tensor w f32[k, c, r, s]
  x[b, c, p, q, r, s] = load(x)
  w[c, k, r, s] = load(w)
  y[b, k, p, q]{mark} = dot(x, w, over=c*r*s)
  output y -> y f32[b, k, p, q]
"""
CASES = {
    "along the depth": PRODUCT.replace("{weight}", "n, h").replace("{mark}", ": tf32.cublas"),
    "across it": PRODUCT.replace("{weight}", "h, n").replace("{mark}", ": tf32.cublas"),
    "convolution": CONVOLUTION.replace("{mark}", ": tf32.cudnn"),
}


def kernel(program: TensorProgram) -> KernelSource:
    """The fastest by estimate of those that take TF32."""

    def found(block: BlockGraph) -> KernelSource | None:
        best = [one.schedule for one in schedules(block, TARGET) if one.schedule.precision == TF32]
        return lower(block, best[0], target=TARGET) if best else None

    blocks = (one.block for one in Search(program, Limits(seconds=5)).run() if one.block.loop_axes)
    return next(source for block in blocks if (source := found(block)) is not None)


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester("cuda", timeout_s=60) as tester:
        yield tester


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_it_is_right_where_the_program_takes_it(tester: FloatTester, text: str) -> None:
    program = parse_program(text)
    source = kernel(program)
    assert source.takes_tf32
    right = tester.test_kernel(source, program)
    assert right.passed, right.reason
    assert right.scenarios[0].name == "normal"
    assert right.scenarios[0].error == pytest.approx(2.9e-4, rel=0.15)
    exact = replace(program, ops=tuple(replace(op, tf32="") for op in program.ops))
    assert "what rounding explains" in (tester.test_kernel(source, exact).reason or "")
    assert not tester.test_kernel(replace(source, jit=source.jit.replace("+ 4096", "+ 0")), program).passed


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float(((found.double() - exact).square().mean() / exact.square().mean()).sqrt())


SETTINGS: tuple[Tf32, ...] = ("cublas", "cudnn")


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_libraries_go_by_the_settings(setting: Tf32) -> None:
    """What the marks say of PyTorch is so on this device."""
    random = torch.Generator("cuda").manual_seed(0)
    before: list[Tf32] = [one for one in SETTINGS if is_set(one)]
    if setting == "cublas":
        x, w = (torch.randn(512, 1024, device="cuda", generator=random) for _ in range(2))
        run, exact = (lambda: x @ w.T), x.double() @ w.double().T
    else:
        x = torch.randn(8, 64, 32, 32, device="cuda", generator=random)
        w = torch.randn(64, 64, 3, 3, device="cuda", generator=random)
        run, exact = (lambda: torch.conv2d(x, w)), torch.conv2d(x.double(), w.double())
    try:
        take((setting,))
        assert 1e-4 < error(run(), exact) < 6e-4
        take([one for one in SETTINGS if one != setting])
        assert error(run(), exact) < 1e-5
    finally:
        take(before)

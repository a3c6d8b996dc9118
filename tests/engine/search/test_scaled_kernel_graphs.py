"""Kernel graphs of a product of float8 matrices and what follows it: one kernel is PyTorch's, one has the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits
from mugraph.search.kernel_graphs.libraries import beside_libraries
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topologies

from tests.engine.ops.harness import lower_region, record

H100, BF16 = TARGETS["h100"], torch.bfloat16


def program_of(function: Callable[..., torch.Tensor], *, rows: bool = False) -> TensorProgram:
    scales = (torch.rand(32, 1), torch.rand(1, 48)) if rows else (torch.rand(()), torch.rand(()))
    tensors = {
        "x": torch.randn(32, 64).to(torch.float8_e4m3fn), "w": torch.randn(48, 64).to(torch.float8_e4m3fn),
        "sx": scales[0], "sw": scales[1], "bias": torch.randn(48).to(BF16), "skip": torch.randn(32, 48).to(BF16),
    }  # fmt: skip
    return lower_region(record(function, tensors)).program


def normed(x: Any, w: Any, sx: Any, sw: Any, bias: Any, skip: Any) -> torch.Tensor:
    return F.rms_norm(skip + torch._scaled_mm(x, w.t(), sx, sw, out_dtype=BF16), (48,))


def biased(x: Any, w: Any, sx: Any, sw: Any, bias: Any, skip: Any) -> torch.Tensor:
    return F.silu(torch._scaled_mm(x, w.t(), sx, sw, bias, out_dtype=BF16)) * skip


@pytest.mark.parametrize("function", [normed, biased])
def test_the_scales_are_the_librarys_and_what_follows_is_a_kernel(function: Callable[..., torch.Tensor]) -> None:
    program = program_of(function)
    limits = Limits(seconds=5.0)
    found = beside_libraries(program, H100, 4, Solver(H100, limits, lambda: False))
    assert found
    for candidate in found[:2]:
        first, *rest = candidate.kernels
        assert first.schedule.library
        call = library_call(first.block)
        assert call is not None
        assert call.shown == "torch._scaled_mm(x, w.mT, sx, sw, out_dtype=torch.float32)"
        assert rest
        assert not any(kernel.schedule.library or any(op.kind.contracts for op in kernel.block.ops) for kernel in rest)
        verdict = verify_topologies(program, [(kernel.block, None) for kernel in candidate.kernels], seed=2)
        assert verdict.passed, verdict.reason
    with FloatTester() as tester:
        source = lower_kernels([(kernel.block, kernel.schedule) for kernel in found[0].kernels])
        tested = tester.test_kernel(source, program, seed=3)
    assert tested.passed, tested.reason


def test_scales_of_rows_are_no_librarys_in_float32() -> None:
    """What one kernel hands to another is float32 where the program's types differ; PyTorch answers in bfloat16."""
    program = program_of(biased, rows=True)
    assert beside_libraries(program, H100, 4, Solver(H100, Limits(seconds=1.0), lambda: False)) == ()

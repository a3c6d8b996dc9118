"""Kernel graphs of products with a bias and what follows them: the bias is the library's, the rest is a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Candidate
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits
from mugraph.search.kernel_graphs.libraries import beside_libraries
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, worth_storing
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topologies

from tests.engine.ops.harness import lower_region, record

H100 = TARGETS["h100"]
Made = Callable[..., torch.Tensor]


def normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.linear(x, w, b), (w.shape[0],))


def with_skip(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(r + F.linear(x, w, b), (w.shape[0],))


def gated(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w.T + b) * torch.sigmoid(torch.addmm(b, r, w.T))


def with_a_matrix(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return torch.tanh(r + x @ w.T)


def program_of(function: Made, m: int, n: int) -> TensorProgram:
    shapes = {"x": (m, n), "w": (n, n), "b": (n,), "r": (m, n)}
    given = {name: torch.empty(shape, dtype=torch.float16, device="meta") for name, shape in shapes.items()}
    return lower_region(record(function, given)).program


def calls_of(candidate: Candidate) -> list[str]:
    found = [library_call(kernel.block) for kernel in candidate.kernels if kernel.schedule.library]
    return [call.function for call in found if call is not None]


@pytest.mark.parametrize(("function", "calls"), [(normed, 1), (with_skip, 1), (gated, 2)])
def test_the_bias_is_the_librarys_and_what_follows_is_a_kernel(function: Made, calls: int) -> None:
    program = program_of(function, 64, 32)
    found = beside_libraries(program, H100, 4, Solver(H100, Limits(seconds=5.0), lambda: False))
    assert found
    assert calls_of(found[0]) == ["torch.addmm"] * calls
    for candidate in found[:2]:
        verdict = verify_topologies(program, [(kernel.block, None) for kernel in candidate.kernels], seed=2)
        assert verdict.passed, verdict.reason
    with FloatTester() as tester:
        source = lower_kernels([(kernel.block, kernel.schedule) for kernel in found[0].kernels])
        tested = tester.test_kernel(source, program, seed=3)
    assert tested.passed, tested.reason


def test_a_matrix_is_added_by_whichever_is_expected_to_be_faster() -> None:
    """PyTorch copies it first, so its product alone and a kernel that adds are offered as well."""
    program = program_of(with_a_matrix, 2048, 2048)
    found = beside_libraries(program, H100, 4, Solver(H100, Limits(seconds=5.0), lambda: False))
    first = [calls_of(candidate)[0] for candidate in found]
    assert {*first} == {"torch.mm", "torch.addmm"}
    assert first[0] == "torch.mm"


def test_a_sum_that_costs_nothing_is_stored_in_place_of_its_product() -> None:
    for function, is_sum in ((normed, True), (with_skip, True), (with_a_matrix, False)):
        program = program_of(function, 64, 32)
        (product,) = (op for op in program.ops if op.kind.contracts)
        (user,) = (op for op in program.ops if product.name in op.inputs)
        stored = worth_storing(program, in_memory(program))
        assert (product.name in stored, user.name in stored) == (not is_sum, is_sum)


def test_a_search_finds_it() -> None:
    program = program_of(normed, 4096, 2048)
    found = [one for graph in KernelGraphs(program, H100, seconds=10.0).run() for one in graph.candidates]
    best = min(found, key=lambda candidate: candidate.estimate_us)
    assert calls_of(best) == ["torch.addmm"]

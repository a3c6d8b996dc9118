"""A product with a bias and relu as one call of PyTorch: what is one, and that the call computes it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Candidate
from mugraph.ir.library import library_call
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.sizes.smaller import smaller
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topologies

from tests.engine.ir.library.calls import Made, call_of, check_call, check_graph, program_of

NAME = "torch._addmm_activation"


def of(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(s, generator=generator).to(dtype) for n, s in zip("xwbvc", shapes, strict=False)}


def relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.relu(F.linear(x, w, b))


LINEAR = ((5, 8), (16, 8), (16,))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (relu, LINEAR),
        (relu, ((2, 5, 8), (16, 8), (16,))),
        (lambda x, w, b: torch.clamp_min(b + x @ w.T, 0), LINEAR),
    ],
    ids=["linear", "rows in two dimensions", "by hand"],
)
def test_the_call_computes_what_the_code_does(function: Made, shapes: tuple[tuple[int, ...], ...]) -> None:
    tensors = of(*shapes)
    call = call_of(function, tensors)
    assert call is not None
    assert call.function == NAME
    assert call.fuses
    check_call(call, function, tensors)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w, b: F.gelu(F.linear(x, w, b)), LINEAR),
        (lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), LINEAR),
        (lambda x, w, b: F.silu(F.linear(x, w, b)), LINEAR),
        (lambda x, w, b: F.relu(x @ w.T), LINEAR),
        (lambda x, w, b: F.relu(x @ w.T) + b, LINEAR),
        (lambda x, w, b: F.relu(x @ w.T + b), ((5, 8), (16, 8), (5, 16))),
        (lambda x, w, b: F.relu(torch.baddbmm(b, x, w)), ((2, 5, 8), (2, 8, 16), (16,))),
        (lambda x, w, b: 2 * relu(x, w, b), LINEAR),
        (lambda x, w, b: F.relu(-F.linear(x, w, b)), LINEAR),
        (lambda x, w, b: torch.abs(F.linear(x, w, b)), LINEAR),
        (lambda x, w, b: F.relu(F.linear(x, w, b)) + F.linear(x, w, b), LINEAR),
    ],
    ids=["gelu", "gelu by tanh", "silu", "no bias", "bias after it", "a matrix", "batch", "twice", "negated", "abs",
         "with a skip"],
)  # fmt: skip
def test_what_is_something_else_is_none(function: Made, shapes: tuple[tuple[int, ...], ...]) -> None:
    call = call_of(function, of(*shapes))
    assert call is None or call.function != NAME


def test_a_graph_with_it_is_verified(tester: FloatTester) -> None:
    program = program_of(relu, of((32, 64), (48, 64), (48,)))
    wrong = [
        ("_addmm_activation", "addmm"),
        ("w.mT, out", "w.mT, use_gelu=True, out"),
        ("w.mT, out", "w.mT, beta=0, out"),
    ]
    check_graph(program, *wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def perceptron(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, v: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return F.linear(relu(x, w, b), v, c)


def functions_of(candidate: Candidate) -> list[str]:
    calls = [library_call(kernel.block) if kernel.schedule.library else None for kernel in candidate.kernels]
    return ["" if call is None else call.function for call in calls]


def test_a_search_finds_it_where_the_next_kernel_is_the_librarys_too(tester: FloatTester) -> None:
    shapes = ((4096, 1024), (1024, 1024), (1024,), (1024, 1024), (1024,))
    given = {n: torch.empty(s, dtype=torch.float16, device="meta") for n, s in zip("xwbvc", shapes, strict=True)}
    program = program_of(perceptron, given)
    found = [one for graph in KernelGraphs(program, TARGETS["h100"], seconds=20.0).run() for one in graph.candidates]
    best = min(found, key=lambda one: one.estimate_us)
    assert functions_of(best) == [NAME, "torch.addmm"]
    assert ["torch.addmm", "", "torch.addmm"] in [functions_of(one) for one in found]
    verdict = verify_topologies(program, [(kernel.block, None) for kernel in best.kernels], seed=2)
    assert verdict.passed, verdict.reason
    small, kernels = smaller(program, [(kernel.block, kernel.schedule) for kernel in best.kernels])
    tested = tester.test_kernel(lower_kernels(kernels), small, seed=3)
    assert tested.passed, tested.reason

"""A product and a tensor that is added to it as one call of PyTorch: what is one, what only looks like one, and that
the call computes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.library import fast_call, library_call
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.sizes.smaller import smaller
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import Made, call_of, check_call, check_graph, program_of

H100 = TARGETS["h100"]


def of(x: tuple[int, ...], w: tuple[int, ...], b: tuple[int, ...]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(s, generator=generator).half() for n, s in zip("xwb", (x, w, b), strict=True)}


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w, b)


def added(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x @ w + b


VECTOR, COPIED = "free", "copied"


@pytest.mark.parametrize(
    ("function", "shapes", "shown", "cost"),
    [
        (linear, ((2, 5, 8), (16, 8), (16,)), "torch.addmm(b, x.view(10, 8), w.mT)", VECTOR),
        (linear, ((5, 8), (16, 8), (16,)), "torch.addmm(b, x, w.mT)", VECTOR),
        (lambda x, w, b: (x @ w + b.float()).to(x.dtype), ((5, 8), (8, 16), (16,)), "torch.addmm(b, x, w)", VECTOR),
        (lambda x, w, b: b + x @ w, ((5, 8), (8, 16), (16,)), "torch.addmm(b, x, w)", VECTOR),
        (added, ((5, 8), (8, 16), (1, 16)), "torch.addmm(b.view(16), x, w)", VECTOR),
        (added, ((5, 8), (8, 16), (5, 1)), "torch.addmm(b, x, w)", COPIED),
        (added, ((5, 8), (8, 16), (1, 1)), "torch.addmm(b, x, w)", COPIED),
        (added, ((5, 8), (8, 16), (5, 16)), "torch.addmm(b, x, w)", COPIED),
        (lambda x, w, b: (x @ w).T + b, ((5, 8), (8, 16), (5,)), None, COPIED),
        (added, ((5, 8), (8, 1), (1,)), None, COPIED),
        (added, ((2, 5, 8), (2, 8, 16), (2, 5, 16)), "torch.baddbmm(b, x, w)", COPIED),
        (added, ((2, 5, 8), (2, 8, 16), (16,)), "torch.baddbmm(b, x, w)", COPIED),
        (added, ((2, 5, 8), (2, 8, 16), (2, 1, 1)), "torch.baddbmm(b, x, w)", COPIED),
        (added, ((2, 5, 8), (2, 8, 16), (5, 16)), "torch.baddbmm(b.view(1, 5, 16), x, w)", COPIED),
        (lambda x, w, b: x @ w + x, ((8, 8), (8, 8), (8,)), None, COPIED),
    ],
    ids=["rows in two dimensions", "linear", "sum in float32", "bias first", "one row", "a column",
         "a number", "a matrix", "turned", "one column",
         "batch", "batch, vector", "batch, numbers", "batch, one matrix", "an operand"],
)  # fmt: skip
def test_the_call_computes_what_the_code_does(
    function: Made, shapes: tuple[tuple[int, ...], ...], shown: str | None, cost: str
) -> None:
    tensors = of(*shapes)
    call = call_of(function, tensors)
    assert call is not None
    assert shown is None or call.shown == shown
    assert call.copied == (0 if cost == VECTOR else function(**tensors).numel())
    if "_2" not in call.shown:  # a tensor that is loaded twice has two names there
        check_call(call, function, tensors)


FACTORS = [
    (
        lambda x, w, b: torch.addmm(b, x, w, beta=0.5, alpha=3),
        ((5, 8), (8, 16), (5, 16)),
        "(b, x, w, beta=0.5, alpha=3.0)",
    ),
    (lambda x, w, b: x @ w - b, ((5, 8), (8, 16), (16,)), "(b, x, w, beta=-1.0)"),
    (lambda x, w, b: 2 * b - (x @ w) / 4, ((5, 8), (8, 16), (5, 16)), "(b, x, w, beta=2.0, alpha=-0.25)"),
    (lambda x, w, b: b + 0.125 * F.linear(x, w), ((2, 5, 8), (16, 8), (16,)), "(b, x.view(10, 8), w.mT, alpha=0.125)"),
    (
        lambda x, w, b: torch.baddbmm(b, x, w, beta=0.25, alpha=-2),
        ((2, 5, 8), (2, 8, 16), (2, 5, 16)),
        "(b, x, w, beta=0.25, alpha=-2.0)",
    ),
]


@pytest.mark.parametrize(("function", "shapes", "shown"), FACTORS, ids=[one[-1] for one in FACTORS])
def test_factors_of_both_are_arguments(
    function: Made, shapes: tuple[tuple[int, ...], ...], shown: str, tester: FloatTester
) -> None:
    tensors = of(*shapes)
    call = call_of(function, tensors)
    assert call is not None
    assert shown in call.shown
    assert call.fuses
    assert bool(call.copied) == ("beta" in shown or tensors["b"].ndim > 1)  # cuBLASLt adds a vector as it is
    check_call(call, function, tensors)
    program = program_of(function, tensors)
    wrong = ("beta=", "beta=0.75 + ") if "beta" in shown else ("alpha=", "alpha=0.75 + ")
    check_graph(program, wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w, b: x @ w * b, ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: x @ w + b + b.sum(), ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: x @ w + 1.0, ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: F.silu(x @ w + b), ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: F.relu(x @ w) + b, ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: x @ w + x @ w, ((5, 8), (8, 16), (16,))),
        (added, ((5, 8), (8, 16), (3, 5, 16))),
        (lambda x, w, b: (x @ w).view(5, 4, 4) + b, ((5, 8), (8, 16), (4, 1))),
        (lambda x, w, b: torch.addmm(b, x, w, beta=0), ((5, 8), (8, 16), (5, 16))),
        (lambda x, w, b: b + b[:1] * (x @ w), ((5, 8), (8, 16), (16,))),
        (lambda x, w, b: (x.float() @ w.float() + b).half(), ((5, 8), (8, 16), (16,))),
    ],
    ids=["times", "two", "a constant", "then silu", "after relu", "two products",
         "more dimensions", "part of the columns", "beta is zero", "a tensor times", "in float32"],
)  # fmt: skip
def test_what_is_something_else_is_none(function: Made, shapes: tuple[tuple[int, ...], ...]) -> None:
    call = call_of(function, of(*shapes))
    assert call is None or "add" not in call.function


def test_a_bias_of_another_type_is_none() -> None:
    block = as_block(program_of(linear, of((5, 8), (16, 8), (16,))))
    assert library_call(block) is not None
    tensors = tuple(replace(t, dtype="f32") if t.name == "b" else t for t in block.tensors)
    assert library_call(replace(block, tensors=tensors)) is None


@pytest.mark.parametrize(
    ("function", "shapes", "wrong"),
    [
        (linear, ((32, 64), (48, 64), (48,)), [("addmm(b, ", "mm("), ("w.mT", "w"), ("b, x", "x, b")]),
        (added, ((32, 32), (32, 32), (32, 32)), [("b, x, w", "b, w, x"), ("b, x, w", "b.mT, x, w"), ("b, x", "x, b")]),
        (added, ((32, 64), (64, 32), (32, 1)), [("addmm(b,", "addmm(b.view(32),")]),
        (added, ((2, 32, 64), (2, 64, 48), (2, 1, 48)), [("baddbmm(b, ", "bmm(")]),
    ],
    ids=["linear", "matrix", "column", "batch"],
)
def test_a_graph_with_it_is_verified(
    function: Made, shapes: tuple[tuple[int, ...], ...], wrong: list[tuple[str, str]], tester: FloatTester
) -> None:
    program = program_of(function, of(*shapes))
    check_graph(program, *wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def test_a_vector_costs_nothing_and_a_matrix_a_copy() -> None:
    def us(function: Made, b: tuple[int, ...]) -> float:
        shapes = {"x": (1024, 1024), "w": (1024, 1024), "b": b}
        given = {name: torch.empty(s, dtype=torch.float16, device="meta") for name, s in shapes.items()}
        call = call_of(function, given)
        assert call is not None
        return estimate_call_us(call, H100)

    alone, vector, matrix = us(lambda x, w, b: x @ w, (1,)), us(added, (1024,)), us(added, (1024, 1024))
    assert alone <= vector < 1.01 * alone
    assert matrix > alone + 2.0  # a kernel more


MEASURED = {
    ("float16", 16, 4096, 4096): 13.8, ("float16", 512, 1024, 1024): 5.6, ("float16", 2048, 2048, 2048): 25.5,
    ("float16", 4096, 1024, 4096): 52.8, ("float16", 4096, 4096, 4096): 180.2, ("bfloat16", 1024, 1024, 1024): 6.8,
    ("bfloat16", 1024, 4096, 2048): 25.0, ("float32", 1024, 1024, 1024): 65.7, ("float32", 2048, 512, 1024): 51.3,
    ("float32", 4096, 4096, 4096): 2709.3,
}  # fmt: skip
"""Rows, depth and columns -> microseconds of a product with a vector on an H200, in a CUDA graph (PyTorch 2.11)."""


@pytest.mark.parametrize("case", MEASURED, ids=str)
def test_an_estimate_is_near_what_was_measured(case: tuple[str, int, int, int]) -> None:
    name, m, k, n = case
    shapes = {"x": (m, k), "w": (n, k), "b": (n,)}
    call = call_of(linear, {of: torch.empty(s, dtype=getattr(torch, name), device="meta") for of, s in shapes.items()})
    assert call is not None
    assert not call.copied
    assert 0.6 < MEASURED[case] / estimate_call_us(call, TARGETS["h200"]) < 2.0


def test_a_vector_is_left_to_others_where_cublaslt_takes_longer() -> None:
    def is_fast(dtype: torch.dtype, rows: int) -> bool:
        shapes = {"x": (rows, 1024), "w": (1024, 1024), "b": (1024,)}
        tensors = {name: torch.empty(s, dtype=dtype, device="meta") for name, s in shapes.items()}
        assert call_of(linear, tensors) is not None
        return fast_call(as_block(program_of(linear, tensors))) is not None

    assert [is_fast(torch.float32, rows) for rows in (1, 64, 512, 1024)] == [True, False, False, True]
    assert is_fast(torch.bfloat16, 64)


def test_a_call_of_millions_is_one_at_the_sizes_at_which_its_text_is_run() -> None:
    """An output of float32 that is large is checked at smaller sizes, at which no search would choose the call."""
    program = program_of(linear, {n: t.float() for n, t in of((1024, 1024), (1024, 1024), (1024,)).items()})
    block = as_block(program)
    assert fast_call(block) is not None
    kernels = [(block, Schedule((), library=True))]
    small, fewer = smaller(program, kernels)
    assert small.sizes != program.sizes
    assert lower_kernels(fewer, outputs=["out"], program=small).launcher

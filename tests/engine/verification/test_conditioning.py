"""Graphs that are equal over the reals and lose digits which their programs keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import DType
from mugraph.search.direct import as_block
from mugraph.verification.conditioning import OwnArithmetic, RoundedArithmetic, loses_digits, nearest, verified
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record
from tests.engine.verification.graphs import (
    Builder,
    Case,
    attention,
    gated_mlp,
    gemm_chain,
    lora,
    n_trans,
    rms_norm_linear,
    rms_norm_linear_late_sum,
    tensor,
)


def other_order(dtype: DType) -> Case:
    """(a @ b) @ d, computed as a @ (b @ d)."""
    sizes = {"m": 512, "k": 64, "n": 256, "h": 64}
    a, b, d, out = (
        tensor(name, axes, sizes, dtype) for name, axes in (("a", "m k"), ("b", "k n"), ("d", "n h"), ("out", "m h"))
    )
    p = Builder()
    p.load("a", a), p.load("b", b), p.load("d", d)
    p.reduce("ab", Kind.DOT, "a", "b", over="k"), p.reduce("abd", Kind.DOT, "ab", "d", over="n")
    q = Builder()
    q.load("a", a), q.load("b", b), q.load("d", d)
    q.reduce("part", Kind.DOT, "b", "d", over="n"), q.accum("bd", "part", "n")
    q.reduce("abd", Kind.DOT, "a", "bd", over="k"), q.store("abd", out)
    return Case(
        TensorProgram("chain", sizes, (a, b, d), tuple(p.ops), {"abd": out}),
        BlockGraph("chain", sizes, (a, b, d, out), tuple(q.ops), (Loop("n"),)),
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("seed", range(5))
def test_another_order_of_products_is_equal_and_loses_digits(dtype: DType, seed: int):
    case = other_order(dtype)
    assert verify_topology(case.program, case.block, seed=0).passed
    assert "out loses digits" in (loses_digits(case.program, [case.block], seed) or "")


@pytest.mark.parametrize("seed", range(5))
def test_a_low_rank_product_of_part_of_a_sum_loses_digits(seed: int):
    """(x A) is rounded before it is added up."""
    case = lora()
    assert verify_topology(case.program, case.block, seed=0).passed
    assert "o loses digits" in (loses_digits(case.program, [case.block], seed) or "")


@pytest.mark.parametrize("make", [rms_norm_linear, rms_norm_linear_late_sum, gated_mlp, attention, n_trans, gemm_chain])
@pytest.mark.parametrize("seed", range(5))
def test_the_papers_graphs_keep_their_digits(make: Callable[[], Case], seed: int):
    case = make()
    assert loses_digits(case.program, [case.block], seed=seed) is None


@pytest.mark.parametrize(("bits", "dtype"), [(11, np.float16), (24, np.float32)])
def test_nearest_rounds_as_the_type_does(bits: int, dtype: type[np.floating]):
    numbers = np.random.default_rng(0).standard_normal(1000) * 10
    assert np.array_equal(nearest(numbers, bits), numbers.astype(dtype).astype(np.float64))


def product(dtype: DType, iterations: int) -> Case:
    """relu(x @ w), in a loop along the axis that is summed over."""
    sizes = {"m": 8, "k": 64 * iterations, "n": 64}
    x, w, out = (tensor(name, axes, sizes, dtype) for name, axes in (("x", "m k"), ("w", "k n"), ("out", "m n")))
    p = Builder()
    p.load("x", x), p.load("w", w), p.reduce("xw", Kind.DOT, "x", "w", over="k")
    q = Builder()
    q.load("x", x), q.load("w", w), q.reduce("part", Kind.DOT, "x", "w", over="k")
    q.accum("xw", "part", "k"), q.store("xw", out)
    return Case(
        TensorProgram("product", sizes, (x, w), tuple(p.ops), {"xw": out}),
        BlockGraph("product", sizes, (x, w, out), tuple(q.ops), (Loop("k"),)),
    )


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("iterations", [2, 16])
@pytest.mark.parametrize("seed", range(8))
def test_a_product_in_a_loop_keeps_the_digits_that_pytorch_keeps(dtype: DType, iterations: int, seed: int):
    """PyTorch adds up in parts too."""
    case = product(dtype, iterations)
    assert loses_digits(case.program, [case.block], seed) is None


def test_parts_of_a_sum_are_rounded_where_its_terms_cancel():
    one, rest = 1.0 + 2.0**-30, 1.0
    a = np.array([[one, -rest]])
    assert OwnArithmetic(24, 24).sum(a, (1,)).tolist() == [[0.0]]
    assert RoundedArithmetic(24, 24).sum(a, (1,)).tolist() == [[2.0**-30]]
    b = np.array([[[one], [-rest]]])
    assert OwnArithmetic(24, 24).dot(b, np.ones((1, 1, 1)), (1,)).tolist() == [[[0.0]]]


def weighted(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    at = torch.arange(11, device=x.device, dtype=x.dtype) - 5
    window = torch.exp(-at.pow(2.0) / 4.5)
    return window / window.sum(), x * x + x


def test_what_depends_on_no_input_keeps_its_digits():
    """A window of weights beside what is computed of tensors: one draw has all of it."""
    program = lower_region(record(weighted, {"x": torch.ones(7, 5)})).program
    assert any(op.axes and not op.inputs for op in program.ops if op.kind is not Kind.LOAD)
    assert verified(program, [as_block(program)]).passed

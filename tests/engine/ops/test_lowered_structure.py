"""Which operators and axes torch code is lowered to: what is shared, joined, renamed, loaded once or twice."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.refusals import Duplicated

from tests.engine.ops.harness import check, lower_region, randn, record

X, Y, V = randn(4, 6), randn(4, 6, seed=1), randn(6)
B3 = randn(2, 4, 6)


def rms(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


def test_norm_and_linear_load_once() -> None:
    lowered = check(lambda x, g, w: (rms(x) * g) @ w, {"x": X, "g": V, "w": randn(6, 5)})
    program = lowered.program
    assert [op.kind for op in program.compute_ops] == [
        Kind.MUL, Kind.SUM, Kind.MUL, Kind.ADD, Kind.SQRT, Kind.DIV, Kind.MUL, Kind.DOT,
    ]  # fmt: skip
    assert sorted(tensor.source for tensor in program.tensors) == ["g", "w", "x"]
    assert len(program.sizes) == 3


def test_square_matrix_with_residual() -> None:
    """The contracted axis and the result's have one size and one source, and stay two axes."""
    lowered = check(lambda x, w: x + rms(x) @ w, {"x": X, "w": randn(6, 6)})
    assert sorted(t.source for t in lowered.program.tensors) == ["w", "x", "x"]


def test_gram_matrix_loads_twice() -> None:
    program = check(lambda x: x @ x.T, {"x": X}).program
    assert [tensor.source for tensor in program.tensors] == ["x", "x"]
    assert len(program.sizes) == 3


def test_reduced_axis_that_returns_is_renamed() -> None:
    program = check(lambda x, w: x + (x @ w) @ w.T, {"x": X, "w": randn(6, 3)}).program
    assert sorted(tensor.source for tensor in program.tensors) == ["w", "w", "x", "x"]
    for op in program.ops:
        for output in program.outputs.values():
            assert not set(op.over) & set(output.axes)


def test_layer_norm_keeps_its_row() -> None:
    """Element-wise uses of a row and its mean are one axis, one load."""
    program = check(lambda x: rms(x - x.mean(-1, keepdim=True)), {"x": X}).program
    assert len(program.tensors) == 1
    assert len(program.sizes) == 2


def test_self_attention_from_one_input() -> None:
    def attention(x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor) -> torch.Tensor:
        q, k, v = x @ wq, x @ wk, x @ wv
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(3), -1) @ v

    weights = {name: randn(6, 3, seed=i) for i, name in enumerate(("wq", "wk", "wv"))}
    for x in (X, B3):
        program = check(attention, {"x": x, **weights}).program
        assert [tensor.source for tensor in program.tensors].count("x") == 2
        assert program.is_lax


def test_computed_value_in_two_roles_is_to_be_loaded() -> None:
    def attention(x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor) -> torch.Tensor:
        h = rms(x)
        return (h @ wq) @ (h @ wk).T

    region = record(attention, {"x": X, "wq": randn(6, 3), "wk": randn(6, 3, seed=1)})
    with pytest.raises(Duplicated) as caught:
        lower_region(region)
    assert caught.value.value == region.calls[-5].outputs[0]


@pytest.mark.parametrize("repeat", ["expand", "interleave", "flag"])
def test_grouped_queries_read_few_keys(repeat: str) -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if repeat == "flag":
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        if repeat == "expand":
            k, v = (t[:, :, None].expand(2, 3, 2, 7, 5).reshape(2, 6, 7, 5) for t in (k, v))
        else:
            k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
        return F.scaled_dot_product_attention(q, k, v)

    inputs = {"q": randn(2, 6, 4, 5), "k": randn(2, 3, 7, 5), "v": randn(2, 3, 7, 5, seed=1)}
    program = check(attention, inputs).program
    assert math.prod(program.tensor("k").shape(program.sizes)) == 2 * 3 * 7 * 5
    assert len(program.tensor("q").dims[1]) == 2


def test_heads_by_views() -> None:
    def attention(
        x: torch.Tensor, c: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor
    ) -> torch.Tensor:
        q = F.linear(x, wq).view(2, 4, 3, 2).transpose(1, 2)
        k = F.linear(c, wk).view(2, 5, 3, 2).transpose(1, 2)
        v = F.linear(c, wv).view(2, 5, 3, 2).transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 4, 6)

    inputs = {"x": B3, "c": randn(2, 5, 6), **{f"w{n}": randn(6, 6, seed=i) for i, n in enumerate("qkv")}}
    program = check(attention, inputs).program
    (output,) = program.outputs.values()
    assert len(output.dims[2]) == 2


def test_views_that_cancel_leave_no_trace() -> None:
    program = check(lambda x, w: F.linear(x.view(2, 4, 2, 3).flatten(2), w), {"x": B3, "w": randn(5, 6)}).program
    assert len(program.sizes) == 4


def test_common_subexpressions_are_shared() -> None:
    program = check(lambda x, y: (x * y).exp() + (y * x).exp() * 2, {"x": X, "y": Y}).program
    assert len([op for op in program.ops if op.kind is Kind.EXP]) == 1


def test_functions_written_by_hand_are_what_they_are() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return x / (1 + torch.exp(-x)) + torch.maximum(-x, x) + torch.clamp(x, min=0.0)

    program = check(both, {"x": X}).program
    assert sorted(op.fn for op in program.ops if op.fn) == ["abs", "relu", "silu"]
    assert not any(op.kind in (Kind.EXP, Kind.MAX) for op in program.ops)


def test_a_sigmoid_or_tanh_is_one_however_it_is_written() -> None:
    """Quotients of exponentials, 1 + tanh and such: one function that nothing overflows in, and no exponential."""
    ways = {
        "quotient": (lambda x, y: x.exp() / (x.exp() + y.exp()), 3),  # also of the difference: two operators
        "one": (lambda x, y: x.exp() / (1 + x.exp()) * y, 2),
        "tanh": (lambda x, y: (1 + torch.tanh(x / 2)) * (0.5 * y), 2),
    }
    for name, (way, count) in ways.items():
        program = check(way, {"x": X, "y": Y}).program
        assert [op.fn for op in program.ops if op.fn] == ["sigmoid"], name
        assert len(program.compute_ops) == count, name
        assert not any(op.kind is Kind.EXP for op in program.ops), name
    tanh = {
        "quotient": (lambda x, y: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()) * y, 2),
        "one": (lambda x, y: (torch.exp(2 * x) - 1) / (torch.exp(2 * x) + 1) * y, 2),
        "sigmoid": (lambda x, y: (2 * torch.sigmoid(2 * x) - 1) * y, 2),
        "rest": (lambda x, y: (1 - 2 / (1 + torch.exp(2 * x))) * y, 2),
    }
    for name, (way, count) in tanh.items():
        program = check(way, {"x": X, "y": Y}).program
        assert [op.fn for op in program.ops if op.fn] == ["tanh"], name
        assert len(program.compute_ops) == count, name
        assert not any(op.kind is Kind.EXP for op in program.ops), name
    # of another multiple it is none
    program = check(lambda x, y: (1 + 2 * torch.tanh(x)) * y, {"x": X, "y": Y}).program
    assert [op.fn for op in program.ops if op.fn] == ["tanh"]


@pytest.mark.parametrize("fn", [
    lambda x: torch.logsumexp(x.sum(1, keepdim=True), 1, keepdim=True),
    lambda x: torch.logsumexp(torch.logsumexp(x.sum(1, keepdim=True).amax(1, keepdim=True), 1, True), 1, True),
])  # fmt: skip
def test_a_sum_of_exponentials_of_one_element_is_the_element(fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    program = check(fn, {"x": X}).program
    assert [op.kind for op in program.compute_ops] == [Kind.SUM]


def test_the_logarithm_of_a_row_of_exponentials_stays() -> None:
    program = check(lambda x: torch.logsumexp(x, 1), {"x": X}).program
    assert [op.kind for op in program.compute_ops] == [Kind.EXP, Kind.SUM, Kind.LOG]

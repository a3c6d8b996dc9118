"""Torch code lowered to tensor programs computes the same numbers in float64."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from harness import check, lower_region, randn, record
from mugraph.ir.ops import Kind
from mugraph.ops.registry import Duplicated, NotLowerable

X, Y, V = randn(4, 6), randn(4, 6, seed=1), randn(6)
POSITIVE = randn(4, 6).abs() + 0.5
B3 = randn(2, 4, 6)

Case = tuple[Callable[..., torch.Tensor], dict[str, torch.Tensor]]
CASES: dict[str, Case] = {
    "matmul": (lambda x, w: x @ w, {"x": X, "w": randn(6, 5)}),
    "matmul method": (lambda x, w: x.matmul(w), {"x": X, "w": randn(6, 5)}),
    "mm": (lambda x, w: torch.mm(x, w), {"x": X, "w": randn(6, 5)}),
    "mm keyword": (lambda x, w: torch.mm(x, mat2=w), {"x": X, "w": randn(6, 5)}),
    "bmm": (lambda x, w: torch.bmm(x, w), {"x": B3, "w": randn(2, 6, 5)}),
    "batched by matrix": (lambda x, w: x @ w, {"x": B3, "w": randn(6, 5)}),
    "matrix by batched": (lambda x, w: x @ w, {"x": X, "w": randn(3, 6, 5)}),
    "broadcast batches": (lambda x, w: x @ w, {"x": randn(2, 1, 4, 6), "w": randn(3, 6, 5)}),
    "matrix by vector": (lambda x, w: x @ w, {"x": X, "w": V}),
    "vector by matrix": (lambda x, w: x @ w, {"x": V, "w": randn(6, 5)}),
    "vector by batched": (lambda x, w: x @ w, {"x": V, "w": randn(2, 6, 5)}),
    "vector by vector": (lambda x, w: x @ w, {"x": V, "w": randn(6, seed=3)}),
    "one row": (lambda x, w: x @ w, {"x": randn(1, 6), "w": randn(6, 5)}),
    "contraction of size 1": (lambda x, w: x @ w, {"x": randn(4, 1), "w": randn(1, 5)}),
    "linear": (lambda x, w: F.linear(x, w), {"x": B3, "w": randn(5, 6)}),
    "linear with bias": (lambda x, w, b: F.linear(x, w, b), {"x": B3, "w": randn(5, 6), "b": randn(5)}),
    "linear to one": (lambda x, w, b: F.linear(x, w, b), {"x": X, "w": randn(1, 6), "b": randn(1)}),
    "addmm": (lambda c, x, w: torch.addmm(c, x, w, beta=0.5, alpha=2), {"c": randn(5), "x": X, "w": randn(6, 5)}),
    "addmm plain": (lambda c, x, w: torch.addmm(c, x, w), {"c": randn(4, 5), "x": X, "w": randn(6, 5)}),
    "baddbmm": (lambda c, x, w: torch.baddbmm(c, x, w, alpha=0.3),
                {"c": randn(2, 4, 5), "x": B3, "w": randn(2, 6, 5)}),
    "outer": (lambda x, y: torch.outer(x, y), {"x": V, "y": randn(4)}),
    "einsum": (lambda x, w: torch.einsum("ij,jk->ik", x, w), {"x": X, "w": randn(6, 5)}),
    "einsum implicit": (lambda x, w: torch.einsum("ij,jk", x, w), {"x": X, "w": randn(6, 5)}),
    "einsum sums": (lambda x: torch.einsum("bij->b", x), {"x": B3}),
    "einsum ellipsis": (lambda x, w: torch.einsum("...i,ij->...j", x, w), {"x": B3, "w": randn(6, 5)}),
    "einsum three": (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
                     {"a": X, "b": randn(6, 3), "c": randn(3, 5)}),
    "einsum four": (lambda a, b, c, d: torch.einsum("bi,ij,jk,bk->b", a, b, c, d),
                    {"a": X, "b": randn(6, 3), "c": randn(3, 5), "d": randn(4, 5)}),
    "einsum lone index": (lambda a, b: torch.einsum("ij,kl->il", a, b), {"a": X, "b": randn(3, 5)}),
    "einsum elementwise": (lambda a, b: torch.einsum("ij,ij->ij", a, b), {"a": X, "b": Y}),
    "einsum attention": (lambda q, k: torch.einsum("bqhd,bkhd->bhqk", q, k),
                         {"q": randn(2, 3, 4, 5), "k": randn(2, 7, 4, 5)}),
    "pointwise convolution": (lambda x, w, b: F.conv2d(x, w, b),
                              {"x": randn(2, 3, 4, 5), "w": randn(6, 3, 1, 1), "b": randn(6)}),
    "add": (lambda x, y: x + y, {"x": X, "y": Y}),
    "add alpha": (lambda x, y: torch.add(x, y, alpha=3), {"x": X, "y": Y}),
    "add number": (lambda x: x + 2, {"x": X}),
    "reflected add": (lambda x: 2 + x, {"x": X}),
    "sub": (lambda x, y: x - y, {"x": X, "y": Y}),
    "sub alpha": (lambda x, y: torch.sub(x, y, alpha=0.5), {"x": X, "y": Y}),
    "reflected sub": (lambda x: 1 - x, {"x": X}),
    "rsub": (lambda x, y: torch.rsub(x, y, alpha=2), {"x": X, "y": Y}),
    "mul broadcast": (lambda x, y: x * y, {"x": B3, "y": randn(4, 1)}),
    "broadcast both": (lambda x, y: x * y, {"x": randn(4, 1), "y": randn(1, 6)}),
    "mul number": (lambda x: 3 * x * 2, {"x": X}),
    "div": (lambda x, y: x / y, {"x": X, "y": POSITIVE}),
    "div number": (lambda x: x / 4, {"x": X}),
    "reflected div": (lambda x: 2 / x, {"x": POSITIVE}),
    "div by quotient": (lambda x, y: x / (1 / y), {"x": X, "y": POSITIVE}),
    "neg": (lambda x: -x, {"x": X}),
    "pow 2": (lambda x: x**2, {"x": X}),
    "pow 3": (lambda x: x.pow(3), {"x": X}),
    "pow 5": (lambda x: torch.pow(x, 5), {"x": X}),
    "pow 0.5": (lambda x: x**0.5, {"x": POSITIVE}),
    "pow -0.5": (lambda x: x.pow(-0.5), {"x": POSITIVE}),
    "pow -1.5": (lambda x: x.pow(-1.5), {"x": POSITIVE}),
    "pow -2": (lambda x: x.pow(-2), {"x": POSITIVE}),
    "square": (lambda x: torch.square(x), {"x": X}),
    "sqrt": (lambda x: x.sqrt() + torch.sqrt(x), {"x": POSITIVE}),
    "rsqrt": (lambda x: torch.rsqrt(x), {"x": POSITIVE}),
    "exp": (lambda x: x.exp() * 2, {"x": X}),
    "exp2": (lambda x: torch.exp2(x), {"x": X}),
    "reciprocal": (lambda x: x.reciprocal(), {"x": POSITIVE}),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), {"x": X, "y": Y, "z": POSITIVE}),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), {"x": X, "y": Y, "z": POSITIVE}),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), {"x": X, "y": Y}),
    "lerp by tensor": (lambda x, y, z: torch.lerp(x, y, z), {"x": X, "y": Y, "z": POSITIVE}),
    "in place": (lambda x, y: (x + 1).mul_(y).add_(x), {"x": X, "y": Y}),
    "silu": (lambda x: F.silu(x), {"x": X}),
    "x * sigmoid": (lambda x: x * torch.sigmoid(x), {"x": X}),
    "relu": (lambda x: torch.relu(x) + F.relu(x) + x.relu(), {"x": X}),
    "tanh": (lambda x: torch.tanh(x), {"x": X}),
    "gelu": (lambda x: F.gelu(x), {"x": X}),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), {"x": X}),
    "maximum": (lambda x, y: torch.maximum(x, y) + torch.minimum(x, y) * 2, {"x": X, "y": Y}),
    "maximum of broadcasts": (lambda x, v: torch.max(x, v) * torch.min(v, x), {"x": X, "v": V}),
    "amax": (lambda x: x.amax((0, 2)) - x.amin((0, 2)), {"x": B3}),
    "max of all": (lambda x: x.max() - x.min(), {"x": X}),
    "max along": (lambda x: x.max(-1).values + torch.min(x, 1)[0] * 2, {"x": X}),
    "max along keepdim": (lambda x: x - x.max(dim=1, keepdim=True)[0] * 0.5, {"x": X}),
    "amax of a broadcast": (lambda x: x.expand(5, 4, 6).amax((0, 1)) * 2, {"x": X}),
    "clamp": (lambda x: x.clamp(-0.5, 1.0) + torch.clamp(x, min=0.25) * 2 + x.clamp_max(0.1), {"x": X}),
    "clamp by tensors": (lambda x, y: torch.clamp(x, min=y) + torch.clip(x, y, y + 1), {"x": X, "y": Y}),
    "clamp between the wrong way": (lambda x: x.clamp(1.0, -0.5) * 2, {"x": X}),
    "hard activations": (lambda x: F.relu6(4 * x) + F.hardtanh(x) + F.hardswish(x) + F.leaky_relu(x), {"x": X}),
    "abs": (lambda x: x.abs() + torch.maximum(x * 2, -2 * x) * torch.abs(x), {"x": X}),
    "erf": (lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), {"x": X}),
    "sigmoid by hand": (lambda x: 1 / (1 + torch.exp(-x)) + x / (torch.exp(-2 * x) + 1), {"x": X}),
    "softmax by logsumexp": (lambda x: torch.exp(x - x.logsumexp(-1, keepdim=True)), {"x": B3}),
    "softmax by logsumexp of several dims": (lambda x: (2 * x - torch.logsumexp(2 * x, (0, 2), True)).exp(), {"x": B3}),
    "relu squared": (lambda x: F.relu(x).square(), {"x": X}),
    "safe softmax": (lambda x: (x - x.amax(-1, keepdim=True)).softmax(-1), {"x": B3}),
    "dropout": (lambda x: F.dropout(x, 0.5, False) * 2, {"x": X}),
    "sum": (lambda x: x.sum(), {"x": X}),
    "sum dim": (lambda x: x.sum(-1), {"x": B3}),
    "sum dims": (lambda x: torch.sum(x, dim=(0, 2)), {"x": B3}),
    "sum keepdim": (lambda x: x.sum(1, keepdim=True) * x, {"x": B3}),
    "sum of a broadcast": (lambda x: (x.expand(5, 4, 6)).sum(0), {"x": X}),
    "product with a broadcast": (lambda x, w: x.expand(4, 6) @ w, {"x": randn(4, 1), "w": randn(6, 5)}),
    "product of broadcasts": (lambda x, w: x.expand(4, 6) @ w.expand(6, 5), {"x": randn(4, 1), "w": randn(1, 5)}),
    "mean": (lambda x: x.mean(dim=-1), {"x": B3}),
    "mean of all": (lambda x: x.mean(), {"x": B3}),
    "var": (lambda x: x.var(-1), {"x": X}),
    "var biased": (lambda x: torch.var(x, 1, unbiased=False, keepdim=True), {"x": X}),
    "var correction": (lambda x: torch.var(x, dim=1, correction=0), {"x": X}),
    "norm": (lambda x: x / x.norm(dim=-1, keepdim=True), {"x": X}),
    "linalg norm": (lambda x: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True), {"x": X}),
    "norm p": (lambda x: x.norm(2, -1), {"x": X}),
    "rms_norm": (lambda x, g: F.rms_norm(x, (6,), g, 1e-5), {"x": B3, "g": V}),
    "rms_norm plain": (lambda x: F.rms_norm(x, (4, 6), eps=1e-3), {"x": B3}),
    "layer_norm": (lambda x, g, b: F.layer_norm(x, (6,), g, b), {"x": B3, "g": V, "b": randn(6, seed=2)}),
    "layer_norm two dims": (lambda x: F.layer_norm(x, (4, 6)), {"x": B3}),
    "batch_norm": (lambda x, m, v, g, b: F.batch_norm(x, m, v, g, b, False, 0.1, 1e-3),
                   {"x": randn(2, 3, 4), "m": randn(3), "v": randn(3).abs(), "g": randn(3, seed=1),
                    "b": randn(3, seed=2)}),
    "group_norm": (lambda x, g, b: F.group_norm(x, 2, g, b), {"x": randn(2, 6, 5), "g": V, "b": randn(6, seed=4)}),
    "instance_norm": (lambda x: F.instance_norm(x), {"x": randn(2, 3, 5)}),
    "normalize": (lambda x: F.normalize(x, dim=-1), {"x": X}),
    "normalize twice": (lambda x, y: F.normalize(F.normalize(x, dim=-1) - y, dim=-1), {"x": X, "y": Y}),
    "softmax": (lambda x: torch.softmax(x, -1), {"x": B3}),
    "functional softmax": (lambda x: F.softmax(x, dim=1, dtype=torch.float32), {"x": B3}),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
                  {"q": randn(2, 3, 4, 5), "k": randn(2, 3, 7, 5), "v": randn(2, 3, 7, 6)}),
    "attention scale": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.7),
                        {"q": randn(3, 4, 5), "k": randn(3, 7, 5), "v": randn(3, 7, 5)}),
    "grouped attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
                          {"q": randn(2, 6, 4, 5), "k": randn(2, 3, 7, 5), "v": randn(2, 3, 7, 5)}),
    "multi-query attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
                              {"q": randn(2, 6, 4, 5), "k": randn(2, 1, 7, 5), "v": randn(2, 1, 7, 5)}),
    "view": (lambda x: x.view(2, 2, 3, 2) * 2, {"x": X}),
    "view and back": (lambda x: (x.view(4, 2, 3) * 2).view(4, 6) + x, {"x": X}),
    "flatten": (lambda x, w: x.flatten(1) @ w, {"x": B3, "w": randn(24, 5)}),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)).sum(1), {"x": X}),
    "reshape merges": (lambda x: x.reshape(-1) * 2, {"x": B3}),
    "transpose": (lambda x, y: x.transpose(0, 1) + y, {"x": X, "y": randn(6, 4)}),
    "T": (lambda x, y: x.T * y, {"x": X, "y": randn(6, 4)}),
    "mT": (lambda x, y: x.mT @ y, {"x": B3, "y": randn(2, 4, 3)}),
    "t": (lambda x, y: x.t() @ y, {"x": X, "y": randn(4, 3)}),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, {"x": B3}),
    "permute tuple": (lambda x: torch.permute(x, (1, -1, 0)) * 2, {"x": B3}),
    "movedim": (lambda x: torch.movedim(x, 0, -1) * 2, {"x": B3}),
    "unsqueeze": (lambda x, y: x.unsqueeze(1) * y, {"x": X, "y": randn(4, 3, 6)}),
    "squeeze": (lambda x: x.squeeze(1) * 2, {"x": randn(4, 1, 6)}),
    "index None": (lambda x, y: x[:, None] * y, {"x": X, "y": randn(4, 3, 6)}),
    "index ellipsis": (lambda x, y: x[..., None] * y, {"x": X, "y": randn(4, 6, 3)}),
    "index ellipsis middle": (lambda x: x[None, ..., 0] * 2, {"x": randn(4, 6, 1)}),
    "expand": (lambda x, y: x.expand(3, 4, 6) * y, {"x": X, "y": randn(3, 4, 6)}),
    "expand as": (lambda x, y: x.expand_as(y) * y, {"x": X, "y": randn(3, 4, 6)}),
    "repeat_interleave": (lambda x, y: x.repeat_interleave(3, dim=1) * y, {"x": X, "y": randn(4, 18)}),
    "repeat_interleave function": (lambda x, y: torch.repeat_interleave(x, 2, 0) * y, {"x": X, "y": randn(8, 6)}),
    "repeat": (lambda x, y: x.repeat(2, 3) * y, {"x": X, "y": randn(8, 18)}),
    "casts": (lambda x: x.float().to(torch.float32).type_as(x).contiguous() * 2, {"x": X}),
    "constants": (lambda x: (x * 1 + 0) / 1 * 2 * 3 + 1 + 0, {"x": X}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str) -> None:
    fn, inputs = CASES[name]
    check(fn, inputs)


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


def test_precision_marks() -> None:
    def norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        v = x.float()
        v = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-5)
        return v.to(x.dtype) @ w

    program = lower_region(record(norm, {"x": X.half(), "w": randn(6, 5).half()})).program
    marks = {op.kind: op.f32 for op in program.compute_ops}
    assert marks[Kind.SUM]
    assert marks[Kind.DIV]
    assert not marks[Kind.DOT]


REFUSED: dict[str, tuple[Callable[..., Any], dict[str, torch.Tensor], str]] = {
    "sizes that do not nest": (lambda x: x.view(2, 3).transpose(0, 1).reshape(2, 3) * 2, {"x": V}, "nest"),
    "logarithm": (lambda x: x - x.logsumexp(-1, keepdim=True), {"x": X}, "logarithm"),
    "a slice across rows": (lambda x: (x * 2).view(24)[3:17] + 1, {"x": X}, "whole pieces"),
    "unknown call": (lambda x: torch.cumsum(x, 0), {"x": X}, "no rule"),
    "integers": (lambda x, i: x * i, {"x": X, "i": torch.arange(6)}, "i64"),
    "comparison": (lambda x, y: x * (x > y), {"x": X, "y": Y}, "no rule|bool"),
    "training": (lambda x: F.dropout(x, 0.5, True), {"x": X}, "random"),
    "output that is an input": (lambda x: x.view(24), {"x": X}, "as it is"),
    "broadcast output": (lambda x: (x * 2).expand(3, 4, 6), {"x": X}, "repeats"),
    "diagonal": (lambda x: torch.einsum("ii->i", x), {"x": randn(4, 4)}, "diagonal"),
    "rounded division": (lambda x: torch.div(x, 2.0, rounding_mode="floor"), {"x": X}, "rounded"),
    "a slice up to a tensor": (lambda x, n: x[:n] * 2, {"x": X, "n": torch.tensor(4)}, "run time"),
    "spectral norm": (lambda x: x / torch.linalg.norm(x, 2), {"x": X}, "Euclidean"),
    "another norm": (lambda x: F.normalize(x, p=1.0, dim=-1), {"x": X}, "Euclidean"),
    "division by zero": (lambda x: x / 0.0, {"x": X}, "zero"),
    "an infinite number": (lambda x: x * math.inf, {"x": X}, "infinite"),
    "double precision": (lambda x: x.double() * 2, {"x": X}, "f64"),
    "integers in between": (lambda x: x.to(torch.int64).float() * 2, {"x": X}, "i64"),
    "sum of integers": (lambda x, i: x * i.sum(), {"x": X, "i": torch.arange(6)}, "i64"),
    "a mask": (lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
               {"q": randn(2, 4, 6), "m": randn(4, 4)}, "mask"),
    "attention with dropout": (lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5),
                               {"q": randn(2, 4, 6)}, "random"),
    "a window in three dimensions": (lambda x, w: F.conv3d(x, w),
                                     {"x": randn(2, 3, 5, 5, 5), "w": randn(4, 3, 2, 1, 1)}, "three dimensions"),
    "a window of a value": (lambda x, w: F.conv1d(x * x, w), {"x": randn(2, 3, 5), "w": randn(4, 3, 2)},
                            "computed here"),
    "a transposed convolution": (lambda x, w: F.conv_transpose1d(x, w),
                                 {"x": randn(2, 3, 5), "w": randn(3, 4, 2)}, "conv_transpose1d has no rule"),
    "statistics": (lambda x, m, v: F.batch_norm(x, m, v, training=True),
                   {"x": randn(4, 3), "m": torch.zeros(3), "v": torch.ones(3)}, "training"),
    "odd power": (lambda x: x.pow(0.3), {"x": POSITIVE}, "power"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    fn, inputs, reason = REFUSED[name]
    with pytest.raises(NotLowerable, match=reason):
        lower_region(record(fn, inputs))


def test_write_to_an_input_is_refused() -> None:
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2.0) + 1.0

    with pytest.raises(NotLowerable):
        lower_region(record(scale, {"x": X.clone()}))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_epsilon_that_rms_norm_takes_by_itself(dtype: torch.dtype) -> None:
    """As PyTorch computes it: small equal numbers x give x / sqrt(x² + eps)."""
    x = torch.full((2, 8), 1e-3, dtype=dtype)
    program = lower_region(record(lambda x: F.rms_norm(x, (8,)), {"x": x})).program
    (added,) = [op.value for op in program.ops if op.kind is Kind.CONST and op.value != 1 / 8]
    small, normalized = x.double()[0, 0], F.rms_norm(x, (8,)).double()[0, 0]
    assert added == pytest.approx(float(small**2 / normalized**2 - small**2), rel=0.05)


@pytest.mark.parametrize("eps", [1e-12, 1e-3, 2.0])
def test_normalize_below_and_above_its_epsilon(eps: float) -> None:
    """Zero rows stay zero, short rows are divided by eps, long ones by their length."""
    x = randn(6, 5) * torch.tensor([0.0, 1e-9, 1e-4, 1e-2, 1.0, 100.0])[:, None]
    check(lambda x: F.normalize(x, dim=-1, eps=eps) * 1e3, {"x": x})


def test_normalize_in_half_precision_has_no_epsilon() -> None:
    """1e-12 is zero there, and a row of zeros gives NaN, as PyTorch gives."""
    zeros = torch.zeros(2, 4, dtype=torch.float16)
    assert F.normalize(zeros, dim=-1).isnan().all()
    program = lower_region(record(lambda x: F.normalize(x, dim=-1), {"x": zeros})).program
    assert [op.kind for op in program.compute_ops] == [Kind.MUL, Kind.SUM, Kind.SQRT, Kind.DIV]
    wider = lower_region(record(lambda x: F.normalize(x, dim=-1), {"x": zeros.bfloat16()})).program
    assert any(op.kind is Kind.MAX for op in wider.ops)


def test_functions_written_by_hand_are_what_they_are() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return x / (1 + torch.exp(-x)) + torch.maximum(-x, x) + torch.clamp(x, min=0.0)

    program = check(both, {"x": X}).program
    assert sorted(op.fn for op in program.ops if op.fn) == ["abs", "relu", "silu"]
    assert not any(op.kind in (Kind.EXP, Kind.MAX) for op in program.ops)


@pytest.mark.parametrize(
    "shifted",
    [
        lambda x: x - x.amax(-1, keepdim=True),
        lambda x: (x - x.max(dim=-1, keepdim=True)[0]) * 0.5,
        lambda x: (x * 0.5 + 1.0) - (x * 0.5 + 1.0).max(-1, keepdim=True).values,
        lambda x: x.tril() + x.triu(1) - x.amax(),  # of all rows
    ],
)
def test_a_maximum_that_no_output_depends_on_is_left_to_the_kernel(shifted: Callable[..., torch.Tensor]) -> None:
    def softmax(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        e = torch.exp(shifted(x))
        return (e @ v) / e.sum(-1, keepdim=True)

    program = check(softmax, {"x": X, "v": randn(6, 5)}).program
    assert not any(op.kind is Kind.AMAX for op in program.ops)
    assert any(op.kind is Kind.EXP for op in program.ops)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.exp(x - x.amax(-1, keepdim=True)) @ y.T,
        lambda x, y: (e := torch.exp(x - x.amax(-1, keepdim=True))) / (e.sum(-1, keepdim=True) + 1.0),
        lambda x, y: (e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(0, keepdim=True),
        lambda x, y: (e := torch.exp(s := x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True) * s,
        lambda x, y: (e := torch.exp(x - y.amax(0, keepdim=True))) / e.sum(-1, keepdim=True),
    ],
)
def test_a_maximum_that_an_output_depends_on_stays(function: Callable[..., torch.Tensor]) -> None:
    """No quotient; something added to the sum; the sum along other rows; the difference itself; other rows' maximum."""
    program = check(function, {"x": X, "y": Y}).program
    assert any(op.kind is Kind.AMAX for op in program.ops)


def test_the_maximum_of_what_a_mask_leaves_is_that_of_a_softmax_alone() -> None:
    def causal(x: torch.Tensor, softmax: bool) -> torch.Tensor:
        hidden = torch.ones(5, 5, dtype=torch.bool).tril().logical_not()
        s = x.masked_fill(hidden, float("-inf"))
        top = s.amax(-1, keepdim=True)
        e = torch.exp(s - top)
        return e / e.sum(-1, keepdim=True) if softmax else x * top

    check(lambda x: causal(x, True), {"x": randn(5, 5)})
    with pytest.raises(NotLowerable, match="a mask hides"):
        lower_region(record(lambda x: causal(x, False), {"x": randn(5, 5)}))


PROMOTIONS: dict[str, tuple[Callable[..., torch.Tensor], str, str]] = {
    "a number": (lambda x, y: (x * 2.5 + 1) @ y.to(x.dtype), "f16", "f32"),
    "float32 by bfloat16": (lambda x, y: x * y, "f32", "bf16"),
    "bfloat16 by float16": (lambda x, y: x + y, "bf16", "f16"),
    "half by a float32 number": (lambda x, y: x * y.sum(), "f16", "f32"),
    "float32 sum of halves": (lambda x, y: x.sum(-1, dtype=torch.float32) + y.to(x.dtype).sum(), "f16", "f32"),
    "float32 softmax of halves": (lambda x, y: x.softmax(-1, dtype=torch.float32) + y.to(x.dtype), "f16", "f32"),
}


@pytest.mark.parametrize("name", PROMOTIONS)
def test_results_have_the_type_that_pytorch_gives_them(name: str) -> None:
    fn, *types = PROMOTIONS[name]
    floats = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    x, y = (randn(4, 4, seed=i).to(floats[dtype]) for i, dtype in enumerate(types))
    program = lower_region(record(fn, {"x": x, "y": y})).program
    (output,) = program.outputs.values()
    assert floats[output.dtype] is fn(x, y).dtype


def test_a_softmax_without_a_dimension() -> None:
    """PyTorch warns, and takes the first of three, the second of two and of four."""
    for shape in ((5,), (4, 5), (2, 4, 5), (2, 3, 4, 5)):
        with pytest.warns(UserWarning, match="Implicit dimension"):
            check(lambda x: F.softmax(x) * 2, {"x": randn(*shape)})

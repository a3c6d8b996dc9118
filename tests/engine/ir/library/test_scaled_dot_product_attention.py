"""Attention as one call of PyTorch: what is one, what only looks like one, and that the call computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.library import LibraryCall, library_call
from mugraph.ir.mugraph import LibraryKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.optimizer.nodes import LIBRARY, node_of
from mugraph.search.direct import as_block
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.targets import TARGETS
from mugraph.verification.document import verify_mugraph
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import check_graph
from tests.engine.ops.harness import lower_region, record

NAME = "torch.nn.functional.scaled_dot_product_attention"
Made = Callable[..., torch.Tensor]


def called(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / sqrt(8), dim=-1) @ v


def divided_last(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = torch.exp((0.5 * q) @ k.transpose(-2, -1))
    return (weights @ v) / weights.sum(-1, keepdim=True)


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def of(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(s, generator=generator).to(dtype) for n, s in zip("qkv", shapes, strict=False)}


def turned(shape: tuple[int, ...]) -> torch.Tensor:
    """[batch, heads, rows, depth] of a tensor that lies with its heads side by side."""
    b, h, s, d = shape
    return torch.randn(b, s, h, d).half().transpose(1, 2)


def program_of(function: Made, tensors: dict[str, torch.Tensor]) -> TensorProgram:
    return lower_region(record(function, tensors)).program


def call_of(function: Made, tensors: dict[str, torch.Tensor]) -> LibraryCall | None:
    call = library_call(as_block(program_of(function, tensors)))
    assert call is None or call.function == NAME
    return call


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape != k.shape)


def causal_by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    later = torch.triu(torch.ones(7, 7, dtype=torch.bool), 1)
    return torch.softmax((q @ k.mT * 0.5).masked_fill(later, float("-inf")), dim=-1) @ v


SQUARE = ((2, 3, 7, 8),) * 3
HEADS = ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8))


@pytest.mark.parametrize(
    ("function", "tensors", "shown"),
    [
        (called, of(*HEADS), f"(q, k, v, scale={1 / sqrt(8)!r})"),
        (by_hand, of(*HEADS), None),
        (divided_last, of(*HEADS), "(q, k, v, scale=0.5)"),
        (by_hand, of((5, 8), (7, 8), (7, 8)), None),
        (by_hand, of((4, 5, 8), (4, 7, 8), (4, 7, 16), dtype=torch.bfloat16), None),
        (grouped, of((2, 6, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)), None),
        (by_hand, {name: turned(shape) for name, shape in zip("qkv", HEADS, strict=True)}, None),
        (causal, of(*SQUARE), f"(q, k, v, scale={1 / sqrt(8)!r}, is_causal=True)"),
        (causal_by_hand, of(*SQUARE), "(q, k, v, scale=0.5, is_causal=True)"),
        (causal, of((2, 6, 7, 8), *SQUARE[1:]), f"(q, k, v, scale={1 / sqrt(8)!r}, is_causal=True, enable_gqa=True)"),
        (causal, of((6, 7, 8), (2, 7, 8), (2, 7, 8)), None),
    ],
    ids=[
        "call",
        "by hand",
        "divided last",
        "one head",
        "wider values",
        "grouped queries",
        "heads side by side",
        "causal",
        "causal by hand",
        "causal and grouped",
        "causal and grouped, no batch",
    ],
)
def test_the_call_computes_what_the_code_does(
    function: Made, tensors: dict[str, torch.Tensor], shown: str | None
) -> None:
    call = call_of(function, tensors)
    assert call is not None
    assert shown is None or call.shown == NAME + shown
    scope: dict[str, Any] = {"torch": torch, **{name: tensor.double() for name, tensor in tensors.items()}}
    exec(call.text({"q": "q", "k": "k", "v": "v", "out": "out"}), scope)
    expected = function(*(tensor.double() for tensor in tensors.values()))
    np.testing.assert_allclose(scope["out"].numpy(), expected.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),  # of more keys than queries
        lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :, :5], v[:, :, :5], torch.ones(5, 5).tril(1).bool()),
        lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :, :5], v[:, :, :5], torch.ones(5, 5).triu().bool()),
        lambda q, k, v: by_hand(q, k, v) * 2,
        lambda q, k, v: by_hand(q, k, 2 * v),
        lambda q, k, v: F.silu(by_hand(q, k, v)),
        lambda q, k, v: torch.softmax(q @ k.mT + 1, dim=-1) @ v,
        lambda q, k, v: torch.softmax(q @ k.mT * k.sum(-1)[..., None, :], dim=-1) @ v,
        lambda q, k, v: torch.softmax(-(q @ k.mT), dim=-1) @ v,  # PyTorch takes roots of the scale
        lambda q, k, v: torch.softmax(q @ k.mT, dim=-2) @ v,
        lambda q, k, v: torch.softmax(q @ k.mT, dim=1) @ v,
        lambda q, k, v: torch.exp(q @ k.mT) @ v,
        lambda q, k, v: torch.exp(q @ k.mT) @ v / torch.exp(2 * (q @ k.mT)).sum(-1, keepdim=True),
        lambda q, k, v: (torch.softmax((q @ k.mT).float(), dim=-1) @ v.float()).half(),
        lambda q, k, v: by_hand(F.silu(q), k, v),
    ],
)
def test_what_is_something_else_is_none(function: Made) -> None:
    assert call_of(function, of(*HEADS)) is None


def test_float32_is_one_as_well() -> None:
    call = call_of(by_hand, of(*HEADS, dtype=torch.float32))
    assert call is not None
    assert call.moved < 4 * sum(2 * 3 * n * 8 for n in (5, 7, 7, 5)) + 1, "the memory-efficient kernel is a fused one"


def test_every_operator_has_its_place() -> None:
    """One constant or one operator changed, and it is another function, or another call."""
    program = program_of(by_hand, of(*HEADS))
    call = library_call(as_block(program))
    assert call is not None
    for at, op in enumerate(program.ops):
        others = []
        if op.kind is Kind.CONST:
            others = [replace(op, value=op.value * exp(1))]
        if op.kind in (Kind.EXP, Kind.SUM, Kind.DIV):
            others = [replace(op, kind={Kind.EXP: Kind.SQRT, Kind.SUM: Kind.AMAX, Kind.DIV: Kind.MUL}[op.kind])]
        for other in others:
            changed = replace(program, ops=(*program.ops[:at], other, *program.ops[at + 1 :]))
            found = library_call(as_block(changed))
            assert found is None or found.shown != call.shown


def test_a_graph_with_it_is_verified(tester: FloatTester) -> None:
    tensors = of((2, 2, 64, 32), (2, 2, 32, 32), (2, 2, 32, 32))
    program = program_of(called, tensors)
    block = as_block(program)
    kernel = node_of(block, LIBRARY)
    assert isinstance(kernel, LibraryKernel)
    names = tuple(tensor.name for tensor in block.inputs), tuple(tensor.name for tensor in block.outputs)
    graph = MuGraph("attention", program.sizes, block.tensors, *names, (kernel,))
    assert verify_mugraph(program, graph, 1).passed
    wrong = replace(kernel, call=kernel.call.replace("scale=0.", "scale=1."))
    verdict = verify_mugraph(program, replace(graph, kernels=(wrong,)), 1)
    assert not verdict.passed
    assert "computes" in verdict.reason
    tested = tester.test_kernel(lower_kernels([(block, LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


@pytest.mark.parametrize(
    ("tensors", "wrong"),
    [
        (of(*SQUARE), [(", is_causal=True", ""), ("(q, k, v, scale", "(q, v, k, scale")]),
        (of((2, 6, 7, 8), *SQUARE[1:]), [("is_causal=True, ", "")]),
        (of((6, 7, 8), (2, 7, 8), (2, 7, 8)), [("is_causal=True, ", ""), ("(1, 2, 7, 8)", "(2, 1, 7, 8)")]),
    ],
    ids=["heads", "groups", "groups, no batch"],
)
def test_a_graph_with_a_causal_one_is_verified(
    tensors: dict[str, torch.Tensor], wrong: list[tuple[str, str]], tester: FloatTester
) -> None:
    program = program_of(causal, tensors)
    check_graph(program, *wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def test_half_of_the_scores_of_a_causal_one_are_not_computed() -> None:
    tensors = {name: torch.empty(4, 16, 4096, 128, dtype=torch.float16, device="meta") for name in "qkv"}
    whole, half = call_of(called, tensors), call_of(causal, tensors)
    assert whole is not None
    assert half is not None
    assert 0.45 < estimate_call_us(half, TARGETS["h100"]) / estimate_call_us(whole, TARGETS["h100"]) < 0.6


MEASURED = {
    (1, 12, 512, 512, 64): 9.25, (1, 16, 512, 512, 64): 9.52, (1, 1, 768, 384, 64): 7.99, (2, 16, 256, 256, 64): 7.39,
    (1, 8, 64, 512, 32): 9.17, (1, 32, 1, 4096, 128): 28.91, (8, 32, 1, 4096, 128): 176.99,
    (1, 32, 2048, 2048, 128): 115.31, (4, 16, 1024, 1024, 64): 44.72, (1, 8, 128, 128, 64): 5.88,
    (2, 32, 16, 1024, 128): 17.75, (16, 16, 4096, 4096, 128): 3645.54,
}  # fmt: skip
"""Batch, heads, queries, keys and depth of a head -> microseconds on an H100, float16, in a CUDA graph."""


def us(tensors: dict[str, torch.Tensor]) -> float:
    call = call_of(by_hand, tensors)
    assert call is not None
    return estimate_call_us(call, TARGETS["h100"])


@pytest.mark.parametrize("shape", MEASURED, ids=str)
def test_an_estimate_is_near_what_was_measured(shape: tuple[int, int, int, int, int]) -> None:
    b, h, s, t, d = shape
    given = {
        name: torch.empty(b, h, n, d, dtype=torch.float16, device="meta") for name, n in (("q", s), ("k", t), ("v", t))
    }
    assert 0.7 < MEASURED[shape] / us(given) < 1.4


def test_what_is_not_fused_or_copied_costs_more() -> None:
    fused = us(of((1, 8, 2048, 64), (1, 8, 512, 64), (1, 8, 512, 64)))
    assert fused < us(of((1, 8, 2048, 64), (1, 8, 512, 64), (1, 8, 512, 72)))
    side_by_side = {name: turned((1, 12, 512, 64)) for name in "qkv"}
    assert 2.4 < us(side_by_side) - us(of(*3 * [(1, 12, 512, 64)])) < 3.5  # measured: 3.0

"""A product of float8 matrices with scales as one call of PyTorch: what is one, what only looks like one, and that the
call computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

from tests.engine.ops.harness import lower_region, record

NAME = "torch._scaled_mm"
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
BF16 = torch.bfloat16
Made = Callable[..., torch.Tensor]
Tensors = dict[str, torch.Tensor]


def of(m: int = 24, k: int = 32, n: int = 48, *, rows: bool = False, types: tuple[Any, Any] = (E4M3, E4M3)) -> Tensors:
    generator = torch.Generator().manual_seed(m + k + n)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    scales = (randn(m, 1).abs(), randn(1, n).abs()) if rows else (randn().abs(), randn(1).abs())
    return {"a": randn(m, k).to(types[0]), "w": randn(n, k).to(types[1]), "sa": scales[0], "sb": scales[1],
            "bias": randn(n).to(BF16)}  # fmt: skip


def called(out: torch.dtype = BF16, *, biased: bool = False) -> Made:
    def function(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
        return torch._scaled_mm(a, w.t(), sa, sb, bias if biased else None, out_dtype=out)

    return function


def by_hand(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    return (sb * ((a.float() @ w.float().T) * sa)).to(BF16) + bias


def program_of(function: Made, tensors: Tensors) -> TensorProgram:
    return lower_region(record(function, tensors)).program


def call_of(function: Made, tensors: Tensors) -> LibraryCall | None:
    call = library_call(as_block(program_of(function, tensors)))
    assert call is None or call.function == NAME
    return call


@pytest.mark.parametrize(
    ("function", "tensors", "shown"),
    [
        (called(), of(), "(a, w.mT, sa, sb, out_dtype=torch.bfloat16)"),
        (called(torch.float16), of(), "(a, w.mT, sa, sb, out_dtype=torch.float16)"),
        (called(torch.float32), of(), "(a, w.mT, sa, sb, out_dtype=torch.float32)"),
        (called(biased=True), of(), "(a, w.mT, sa, sb, bias, out_dtype=torch.bfloat16)"),
        (called(), of(rows=True), "(a, w.mT, sa, sb, out_dtype=torch.bfloat16)"),
        (called(biased=True), of(rows=True), "(a, w.mT, sa, sb, bias, out_dtype=torch.bfloat16)"),
        (called(), of(1, rows=True), None),
        (called(), of(1), None),
        (called(), of(types=(E5M2, E4M3)), None),
        (called(), of(types=(E4M3, E5M2)), None),
        (by_hand, of(), None),
        (by_hand, of(rows=True), None),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sa, bias), of(), "(a, w.mT, sa, sa, out_dtype=torch.bfloat16)"),
    ],
    ids=["tensors", "float16", "float32", "bias", "rows", "rows, bias", "one row of rows", "one row", "e5m2 first",
         "e5m2 second", "by hand", "by hand, rows", "one scale for both"],
)  # fmt: skip
def test_the_call_computes_what_the_code_does(function: Made, tensors: Tensors, shown: str | None) -> None:
    call = call_of(function, tensors)
    assert call is not None
    assert shown is None or call.shown == NAME + shown
    expected = function(**tensors)
    scope: dict[str, Any] = {"torch": torch, **tensors, "out": torch.full_like(expected, float("nan"))}
    exec(call.text({name: name for name in (*tensors, "out")}), scope)
    torch.testing.assert_close(scope["out"], expected, rtol=2**-7, atol=2**-7)
    # A launcher is run on tensors without memory before it is measured.
    scope = {"torch": torch, **{name: tensor.to("meta") for name, tensor in tensors.items()}}
    exec(call.text({name: name for name in (*tensors, "out")}), scope)
    assert (scope["out"].shape, scope["out"].dtype) == (expected.shape, expected.dtype)


def test_scales_without_a_second_dimension_get_one() -> None:
    def function(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
        return ((a.float() @ w.float().T) * sa[:, None] * sb).to(BF16)

    tensors = of()
    tensors |= {"sa": torch.rand(24), "sb": torch.rand(48)}
    call = call_of(function, tensors)
    assert call is not None
    assert call.shown == f"{NAME}(a, w.mT, sa.view(24, 1), sb.view(1, 48), out_dtype=torch.bfloat16)"


def turned(name: str) -> Tensors:
    """With one of them column by column."""
    tensors = of()
    return tensors | {name: tensors[name].t().contiguous().t()}


def one_scale(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    return ((a.float() @ w.float().T) * sa).to(BF16)


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (called(), turned("w")),
        (called(), turned("a")),
        (one_scale, of()),
        (one_scale, of(rows=True)),
        (lambda a, w, sa, sb, bias: by_hand(a, w, sa, sb.sum(), bias), of(rows=True)),
        (lambda a, w, sa, sb, bias: one_scale(a, w, sa, sb, bias) * sb * sb, of()),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sb, bias) * 2, of()),
        (lambda a, w, sa, sb, bias: F.silu(called()(a, w, sa, sb, bias)), of()),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sb, bias) + bias[:24, None], of()),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sb, bias) - bias, of()),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sb, bias) + sa, of()),
        (lambda a, w, sa, sb, bias: called()(a, w, sa, sb, bias).sum(0), of()),
        (lambda a, w, sa, sb, bias: one_scale(a, w, sa, sb, bias) / sb, of()),
        (lambda a, w, sa, sb, bias: ((a.float() @ w.float().T) / 2 * sa * sb).to(BF16), of()),
        (called(torch.float16), of(rows=True)),
        (called(torch.float32), of(rows=True)),
        (called(), of(rows=True, types=(E5M2, E4M3))),
        (called(), of(types=(E5M2, E5M2))),
        (called(), of(k=40)),
        (called(), of(n=40)),
        (lambda a, w, sa, sb, bias: ((a.float() @ w.float().T) * sa + bias).float(), of()),
    ],
    ids=[
        "second matrix row by row", "first matrix column by column", "a scale is missing", "a scale of rows is missing",
        "rows and a tensor", "three scales", "twice", "silu", "bias of rows", "bias taken away", "bias of another type",
        "summed", "divided", "halved", "rows in float16", "rows in float32", "rows of e5m2", "e5m2 twice",
        "depth of 40", "40 columns", "float32 with a bias",
    ],
)  # fmt: skip
def test_what_is_something_else_is_none(function: Made, tensors: Tensors) -> None:
    assert call_of(function, tensors) is None


def test_int8_is_none() -> None:
    tensors = of()
    tensors |= {name: torch.randint(-128, 128, tensors[name].shape, dtype=torch.int8) for name in ("a", "w")}
    assert call_of(by_hand, tensors) is None


def test_every_operator_has_its_place() -> None:
    """One operator or one tensor changed, and it is another function, or another call."""
    program = program_of(called(biased=True), of(rows=True))
    block = as_block(program)
    call = library_call(block)
    assert call is not None
    for at, op in enumerate(block.ops):
        for kind in (Kind.MUL, Kind.ADD, Kind.DIV, Kind.MAX):
            if op.kind in (Kind.MUL, Kind.ADD) and kind is not op.kind:
                changed = replace(block, ops=(*block.ops[:at], replace(op, kind=kind), *block.ops[at + 1 :]))
                assert library_call(changed) is None
    for at, tensor in enumerate(block.tensors):
        changed = replace(block, tensors=(*block.tensors[:at], replace(tensor, dtype="f16"), *block.tensors[at + 1 :]))
        assert library_call(changed) is None, tensor.name


def graph_of(program: TensorProgram) -> tuple[MuGraph, LibraryKernel]:
    block = as_block(program)
    kernel = node_of(block, LIBRARY)
    assert isinstance(kernel, LibraryKernel)
    names = tuple(tensor.name for tensor in block.inputs), tuple(tensor.name for tensor in block.outputs)
    return MuGraph("product", program.sizes, block.tensors, *names, (kernel,)), kernel


WRONG = (
    (", sa, sb", ", sb, sa"), ("sa, sb, ", "sa, sa, "), (", bias", ""), ("w.mT", "w"), ("bfloat16", "float16"),
    ("a, w.mT", "w, a.mT"),
)  # fmt: skip


@pytest.mark.parametrize("rows", [False, True], ids=["tensors", "rows"])
def test_a_graph_with_it_is_verified(rows: bool, tester: FloatTester) -> None:
    program = program_of(called(biased=True), of(32, 64, 48, rows=rows))
    graph, kernel = graph_of(program)
    assert verify_mugraph(program, graph, 1).passed
    for old, new in WRONG:
        wrong = replace(kernel, call=kernel.call.replace(old, new))
        if wrong.call == kernel.call:
            continue
        if not rows and (old, new) == (", sa, sb", ", sb, sa"):  # the same numbers in another order
            continue
        verdict = verify_mugraph(program, replace(graph, kernels=(wrong,)), 1)
        assert not verdict.passed, wrong.call
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def us(tensors: Tensors, target: str = "h100") -> float:
    call = call_of(called(), tensors)
    assert call is not None
    return estimate_call_us(call, TARGETS[target])


def large(m: int, k: int, n: int) -> Tensors:
    types = {"a": ((m, k), E4M3), "w": ((n, k), E4M3), "sa": ((), torch.float32), "sb": ((), torch.float32),
             "bias": ((n,), BF16)}  # fmt: skip
    return {name: torch.empty(shape, dtype=kind, device="meta") for name, (shape, kind) in types.items()}


MEASURED = {(2048, 2048, 2048): 15.6, (2048, 4096, 4096): 52.9, (4096, 4096, 4096): 103.7, (8192, 8192, 8192): 787.4}
"""Rows, depth and columns -> microseconds on an H100, a scale of each matrix, a bfloat16 result, in a CUDA graph."""


@pytest.mark.parametrize("shape", MEASURED, ids=str)
def test_an_estimate_is_near_what_was_measured(shape: tuple[int, int, int]) -> None:
    assert 0.85 < MEASURED[shape] / us(large(*shape)) < 1.15


def test_it_is_expected_to_be_faster_than_a_product_of_16_bits() -> None:
    tensors = large(4096, 4096, 4096)
    wide = {name: torch.empty(4096, 4096, dtype=BF16, device="meta") for name in ("a", "w")}
    call = library_call(as_block(program_of(lambda a, w: a @ w.T, wide)))
    assert call is not None
    assert 1.5 < estimate_call_us(call, TARGETS["h100"]) / us(tensors) < 2.1


def test_a_device_without_it_takes_for_ever() -> None:
    assert us(of(), "a100") == float("inf")

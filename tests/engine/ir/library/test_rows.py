"""Softmax and norms of rows as calls of PyTorch: what is one however it is written, what only looks like one, and that
the call computes it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import e
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.library import library_call
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.targets import TARGETS
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.document import verify_mugraph
from mugraph.verification.evaluate import Malformed, evaluate_program
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import Made, call_of, check_call, check_graph, graph_of, program_of

Tensors = dict[str, torch.Tensor]
NORM = "torch.nn.functional."


def of(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> Tensors:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(s, generator=generator).to(dtype) for n, s in zip("xwb", shapes, strict=False)}


def mean(x: Any) -> torch.Tensor:
    return x.mean(-1, keepdim=True)


def total(x: Any) -> torch.Tensor:
    return x.sum(-1, keepdim=True)


LONE, WEIGHED, AFFINE = of((5, 7)), of((5, 7), (7,)), of((5, 7), (7,), (7,))

SAME: dict[str, tuple[Made, Tensors, str]] = {
    "softmax": (lambda x: torch.softmax(x, -1), of((2, 5, 7)), "torch.softmax(x, -1)"),
    "softmax by hand": (lambda x: x.exp() / total(x.exp()), LONE, "torch.softmax(x, -1)"),
    "softmax less the maximum": (
        lambda x: (x - x.amax(-1, keepdim=True)).exp() / total((x - x.amax(-1, keepdim=True)).exp()),
        LONE, "torch.softmax(x, -1)",
    ),
    "softmax less the mean": (
        lambda x: (x - mean(x)).exp() / total((x - mean(x)).exp()), LONE, "torch.softmax(x, -1)"
    ),
    "softmax by inverse": (lambda x: x.exp() * (1 / total(x.exp())), LONE, "torch.softmax(x, -1)"),
    "softmax of one row": (lambda x: torch.softmax(x, -1), of((7,)), "torch.softmax(x, -1)"),
    "softmax of a row in two dimensions": (
        lambda x: torch.softmax(x.view(5, 21), -1).view(5, 3, 7), of((5, 3, 7)), "torch.softmax(x, -1)"
    ),
    "log_softmax": (lambda x: F.log_softmax(x, dim=-1), of((2, 5, 7)), "torch.log_softmax(x, -1)"),
    "log_softmax by hand": (lambda x: x - torch.log(total(x.exp())), LONE, "torch.log_softmax(x, -1)"),
    "log_softmax less the maximum": (
        lambda x: (y := x - x.amax(-1, keepdim=True)) - torch.log(total(y.exp())), LONE, "torch.log_softmax(x, -1)"
    ),
    "log_softmax by logsumexp": (
        lambda x: x - torch.logsumexp(x, -1, keepdim=True), LONE, "torch.log_softmax(x, -1)"
    ),
    "rms_norm": (
        lambda x, w: F.rms_norm(x, (7,), w, 1e-6), WEIGHED,
        f"{NORM}rms_norm(x, weight=w, normalized_shape=(7,), eps=1e-06)",
    ),
    "rms_norm without a weight": (
        lambda x: F.rms_norm(x, (7,), eps=0.5), LONE, f"{NORM}rms_norm(x, normalized_shape=(7,), eps=0.5)"
    ),
    "rms_norm without eps": (
        lambda x: x / torch.sqrt(mean(x * x)), LONE, f"{NORM}rms_norm(x, normalized_shape=(7,), eps=0.0)"
    ),
    "rms_norm by hand": (
        lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), WEIGHED,
        f"{NORM}rms_norm(x, weight=w, normalized_shape=(7,), eps=1e-06)",
    ),
    "rms_norm in float32": (
        lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * w,
        WEIGHED, f"{NORM}rms_norm(x, weight=w, normalized_shape=(7,), eps=1e-06)",
    ),
    "rms_norm by a sum": (
        lambda x, w: x * w / torch.sqrt(total(x * x) / 7 + 1e-5), WEIGHED,
        f"{NORM}rms_norm(x, weight=w, normalized_shape=(7,), eps=1e-05)",
    ),
    "rms_norm over two dimensions": (
        lambda x, w: F.rms_norm(x, (3, 7), w, 1e-5), of((5, 3, 7), (3, 7)),
        f"{NORM}rms_norm(x, weight=w, normalized_shape=(21,), eps=1e-05)",
    ),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (7,), w, b), AFFINE,
        f"{NORM}layer_norm(x, weight=w, bias=b, normalized_shape=(7,), eps=1e-05)",
    ),
    "layer_norm without a bias": (
        lambda x, w: F.layer_norm(x, (7,), w), WEIGHED,
        f"{NORM}layer_norm(x, weight=w, normalized_shape=(7,), eps=1e-05)"
    ),
    "layer_norm alone": (
        lambda x: F.layer_norm(x, (7,)), of((2, 5, 7)), f"{NORM}layer_norm(x, normalized_shape=(7,), eps=1e-05)"
    ),
    "group_norm without a weight": (
        lambda x: F.group_norm(x, 2), of((5, 6, 7)),
        f"{NORM}layer_norm(x.view(10, 21), normalized_shape=(21,), eps=1e-05)"
    ),
    "layer_norm by hand": (
        lambda x, w, b: b + (x - mean(x)) * (w / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-12)), AFFINE,
        f"{NORM}layer_norm(x, weight=w, bias=b, normalized_shape=(7,), eps=1e-12)",
    ),
    "layer_norm by two means": (
        lambda x, w, b: (x - mean(x)) * torch.rsqrt(mean(x * x) - mean(x) ** 2 + 1e-6) * w + b, AFFINE,
        f"{NORM}layer_norm(x, weight=w, bias=b, normalized_shape=(7,), eps=1e-06)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_it_is_found_however_it_is_written_and_the_call_computes_it(name: str) -> None:
    function, tensors, shown = SAME[name]
    call = call_of(function, tensors)
    assert call is not None
    assert call.shown == shown
    check_call(call, function, tensors, 1e-6 if "float32" in name else 1e-12)


OTHER: dict[str, tuple[Made, Tensors]] = {
    "another dimension": (lambda x: torch.softmax(x, 0), LONE),
    "the middle dimension": (lambda x: torch.softmax(x, 1), of((2, 5, 7))),
    "of twice the logits": (lambda x: torch.softmax(2 * x, -1), LONE),
    "a softmax of base 2": (lambda x: torch.exp2(x) / total(torch.exp2(x)), LONE),
    "times two": (lambda x: 2 * torch.softmax(x, -1), LONE),
    "one more": (lambda x: x.exp() / (1 + total(x.exp())), LONE),
    "by another sum": (lambda x: x.exp() / total((2 * x).exp()), LONE),
    "a mean of exponentials": (lambda x: x.exp() / mean(x.exp()), LONE),
    "a logarithm of a softmax along another dimension": (lambda x: torch.log_softmax(x, 0), LONE),
    "twice a log_softmax": (lambda x: 2 * torch.log_softmax(x, -1), LONE),
    "less another sum": (lambda x: x - torch.log(total(x.exp()) + 1), LONE),
    "less the maximum once": (
        lambda x: x - torch.log(total((x - x.amax(-1, keepdim=True)).exp())), LONE
    ),
    "a softmax of a turned tensor": (lambda x: torch.softmax(x, -1), {"x": torch.randn(7, 5).half().T}),
    "a softmax of a part of rows": (lambda x: torch.softmax(x, -1), {"x": torch.randn(5, 9).half()[:, :7]}),
    "a softmax in float32": (lambda x: torch.softmax(x.float(), -1), LONE),
    "a weight of rows": (lambda x, w: F.rms_norm(x, (7,), None, 1e-6) * w, of((5, 7), (5, 1))),
    "a weight of everything": (lambda x, w: F.rms_norm(x, (7,), None, 1e-6) * w, of((5, 7), (5, 7))),
    "one more than the weight": (lambda x, w: F.rms_norm(x, (7,), None, 1e-6) * (1 + w), WEIGHED),
    "a weight of another type": (
        lambda x, w: (F.rms_norm(x, (7,), None, 1e-6) * w).half(), WEIGHED | {"w": torch.randn(7)}
    ),
    "a bias without a weight": (lambda x, w: F.layer_norm(x, (7,)) + w, WEIGHED),
    "a bias of an rms norm": (lambda x, w, b: F.rms_norm(x, (7,), w) + b, AFFINE),
    "the bias is weighed as well": (lambda x, w, b: (F.layer_norm(x, (7,)) + b) * w, AFFINE),
    "eps after the root": (lambda x: x / (torch.sqrt(mean(x * x)) + 1e-5), LONE),
    "a length": (lambda x: x / torch.sqrt(total(x * x) + 1e-5), LONE),
    "a mean of one place less": (lambda x: x / torch.sqrt(total(x * x) / 6 + 1e-5), LONE),
    "an unbiased variance": (lambda x: (x - mean(x)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5), LONE),
    "not centred": (lambda x: x / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5), LONE),
    "centred twice": (lambda x: (x - 2 * mean(x)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5), LONE),
    "less than nothing under the root": (lambda x: x / torch.sqrt(mean(x * x) - 1e-5), LONE),
    "a square": (lambda x: x * x / torch.sqrt(mean(x * x) + 1e-5), LONE),
    "a fourth root": (lambda x: x / torch.sqrt(torch.sqrt(mean(x * x) + 1e-5)), LONE),
    "of the middle": (lambda x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5), of((2, 5, 7))),
    "then silu": (lambda x, w: F.silu(F.rms_norm(x, (7,), w)), WEIGHED),
    "of silu": (lambda x, w: F.rms_norm(F.silu(x), (7,), w), WEIGHED),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_what_is_something_else_is_none(name: str) -> None:
    assert call_of(*OTHER[name]) is None


def changes(program: TensorProgram, rng: random.Random) -> Sequence[Op]:
    """One or two operators of another kind, with other operands, or with another number."""
    ops = list(program.ops)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(ops))
        op, before = ops[at], [one.name for one in ops[:at]]
        if op.kind is Kind.CONST:
            ops[at] = replace(op, value=op.value * rng.choice((e, -1.0, 2.0, 0.0)))
        elif op.kind in (Kind.MUL, Kind.ADD, Kind.DIV):
            kind = rng.choice((Kind.MUL, Kind.ADD, Kind.DIV))
            inputs = rng.choice((op.inputs, op.inputs[::-1], (op.inputs[0], rng.choice(before))))
            ops[at] = replace(op, kind=kind, inputs=inputs)
        elif op.kind in (Kind.EXP, Kind.SQRT):
            ops[at] = replace(op, kind=rng.choice((Kind.EXP, Kind.SQRT)))
        elif op.kind in (Kind.SUM, Kind.AMAX):
            ops[at] = replace(op, kind=rng.choice((Kind.SUM, Kind.AMAX)))
    return ops


def test_whatever_has_a_call_is_what_the_call_computes() -> None:
    """Of random changes to programs that have one."""
    rng, matched, refused = random.Random(3), 0, 0
    for function, tensors, _ in SAME.values():
        region = program_of(function, tensors)
        for _ in range(60):
            program = replace(region, ops=tuple(changes(region, rng)))
            values = {op.name: op for op in program.ops}
            if any(
                op.kind.is_elementwise and {*op.axes} != {axis for name in op.inputs for axis in values[name].axes}
                for op in program.ops
            ):
                continue  # no program
            call = library_call(as_block(program))
            if call is None:
                refused += 1
                continue
            wide = {name: tensor.double().abs() for name, tensor in tensors.items()}
            given = {tensor.name: wide[tensor.name].numpy()[None] for tensor in program.tensors if tensor.name in wide}
            try:
                (expected,) = evaluate_program(program, given, FloatArithmetic()).values()
            except (KeyError, Malformed):
                continue
            scope: dict[str, Any] = {"torch": torch, **wide}
            exec(call.text({name: name for name in (*tensors, "out")}), scope)
            np.testing.assert_allclose(scope["out"].numpy(), expected[0].reshape(scope["out"].shape), atol=1e-9)
            matched += 1
    assert matched > 50
    assert refused > 300


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("softmax", [("torch.softmax", "torch.log_softmax"), ("x, -1", "2 * x, -1")]),
        ("rms_norm", [("eps=1e-06", "eps=1e-05"), ("weight=w, ", ""), ("rms_norm", "layer_norm")]),
        ("layer_norm", [("eps=1e-05", "eps=1e-06"), (", bias=b", ""), ("bias=b", "bias=w"), ("(7,)", "(5,)")]),
        ("layer_norm by two means", [("eps=1e-06", "eps=0.0"), ("weight=w, bias=b", "weight=b, bias=w")]),
    ],
)
def test_a_graph_with_it_is_verified(name: str, wrong: list[tuple[str, str]], tester: FloatTester) -> None:
    function, tensors, _ = SAME[name]
    program = program_of(function, tensors)
    check_graph(program, *wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def test_a_graph_of_log_softmax_is_verified(tester: FloatTester) -> None:
    """Over the fields its logarithm is a random function of the sum; its text is compared on numbers alone."""
    function, tensors, _ = SAME["log_softmax less the maximum"]
    program = program_of(function, tensors)
    verdict = verify_mugraph(program, graph_of(program)[0], 1)
    assert verdict.passed, verdict.reason
    source = lower_kernels([(as_block(program), LIBRARY)])
    tested = tester.test_kernel(source, program, seed=3)
    assert tested.passed, tested.reason
    other = replace(source, launcher=source.launcher.replace("torch.log_softmax", "torch.softmax"))
    assert other.launcher != source.launcher
    assert not tester.test_kernel(other, program, seed=3).passed


def test_rows_may_have_any_number_where_the_text_names_none() -> None:
    softmax, norm = (call_of(SAME[name][0], SAME[name][1]) for name in ("softmax", "rms_norm"))
    assert softmax is not None
    assert norm is not None
    assert softmax.is_sizeless
    assert not norm.is_sizeless


MEASURED = {
    ("softmax", 16384, 1024): 31.9, ("softmax", 1024, 16384): 35.4, ("softmax", 512, 32768): 36.9,
    ("softmax", 128, 131072): 42.0, ("softmax", 8, 262144): 63.3, ("softmax", 8, 1048576): 239.1,
    ("softmax", 1, 8388608): 1832.4, ("rms_norm", 16384, 1024): 24.0, ("rms_norm", 4096, 4096): 24.3,
    ("rms_norm", 1024, 16384): 38.1, ("rms_norm", 128, 131072): 203.1, ("rms_norm", 8, 1048576): 1562.0,
    ("layer_norm", 16384, 1024): 40.2, ("layer_norm", 4096, 4096): 31.5, ("layer_norm", 1024, 16384): 43.5,
    ("layer_norm", 128, 131072): 253.0, ("layer_norm", 8, 1048576): 2009.8,
}  # fmt: skip
"""Rows and their lengths -> microseconds on an H200, float16, in a CUDA graph that reads more than its cache."""


@pytest.mark.parametrize("case", MEASURED, ids=str)
def test_an_estimate_is_near_what_was_measured(case: tuple[str, int, int]) -> None:
    name, rows, length = case
    x = torch.empty(rows, length, dtype=torch.float16, device="meta")
    vectors = {n: torch.empty(length, dtype=torch.float16, device="meta") for n in "wb"}
    functions: dict[str, tuple[Made, Tensors]] = {
        "softmax": (lambda x: torch.softmax(x, -1), {"x": x}),
        "rms_norm": (lambda x, w: F.rms_norm(x, (length,), w), {"x": x, "w": vectors["w"]}),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (length,), w, b), {"x": x, **vectors}),
    }
    call = call_of(*functions[name])
    assert call is not None
    assert 0.6 < MEASURED[case] / estimate_call_us(call, TARGETS["h200"]) < 2.0

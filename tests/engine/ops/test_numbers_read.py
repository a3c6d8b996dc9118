"""Weights that are stored in eight bits: read as the numbers that they are, and checked as everything else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.edit.module.masks import MASKS
from mugraph.edit.module.parts import PRELUDE
from mugraph.ir.block import Schedule
from mugraph.ir.dtypes import COMPUTED, READ, STORED, WRITTEN, DType
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec.block import store_violations
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.search.schedules.tiles import Shape
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.functions import FUNCTIONS
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.tiles import MADE, RAW, Floats
from mugraph.triton_text.tiles import Kind as TritonKind
from mugraph.verification.float_inputs import make_inputs, scenarios
from mugraph.verification.stored import held
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

CODES = torch.randint(-128, 128, (10, 12), dtype=torch.int8, generator=torch.Generator().manual_seed(1))
POSITIVE = CODES.to(torch.int16).add(128).to(torch.uint8)
ROWS = randn(6, 12)
STEPS = randn(10, seed=2)

PROGRAMS = {
    "scaled before": (lambda x, w, s: x @ (w.to(x.dtype) * s[:, None]).T, {"x": ROWS, "w": CODES, "s": STEPS}),
    "scaled after": (lambda x, w, s: F.linear(x, w.type_as(x)) * s, {"x": ROWS, "w": CODES, "s": STEPS}),
    "groups": (
        lambda x, w, s: x @ (w.to(x.dtype).unflatten(1, (3, 4)) * s[..., None]).flatten(1).mT,
        {"x": ROWS, "w": CODES, "s": randn(10, 3, seed=4)},
    ),
    "zeros": (lambda x, w, s: x @ ((w.to(s.dtype) - 128) * s[:, None]).T, {"x": ROWS, "w": POSITIVE, "s": STEPS}),
    "moved first": (lambda x, w: x[:, :5] @ w.T[2:7].to(x.dtype), {"x": ROWS, "w": CODES}),
    "in turn": (
        lambda x, w, s: x @ (torch.stack((w[:, :6], w[:, 6:]), -1).flatten(1).to(x.dtype) * s[:, None]).T,
        {"x": ROWS, "w": CODES, "s": STEPS},
    ),
    "side by side": (lambda x, w: x @ torch.cat((w[:, 6:], w[:, :6]), 1).to(x.dtype).T, {"x": ROWS, "w": CODES}),
    "conditions beside": (lambda x, w: torch.cat([w, w > 0]).T * x[:, :1, None], {"x": ROWS, "w": CODES}),
    "converted by what it meets": (lambda w, s: w * s[:, None] + 1.0, {"w": CODES, "s": STEPS}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_stored_is_read(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    program = check(fn, inputs).program
    kinds = {tensor.name: tensor.dtype for tensor in program.tensors}
    assert kinds.get("w", kinds.get("w_part")) in ("i8", "u8")
    for scenario in scenarios(program):
        drawn = make_inputs(program, scenario, torch.Generator().manual_seed(0))
        for tensor in program.tensors if drawn is not None else ():
            assert drawn is not None
            numbers = drawn.inputs[tensor.name]
            assert numbers.unique().numel() > 4
            assert numbers.dtype == getattr(torch, {**COMPUTED, **STORED}[tensor.dtype].torch)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, w: x @ (w + w).to(x.dtype).T,  # wraps around
        lambda x, w: x.to(torch.int8) * x,  # rounds
        lambda x, w: x.to(torch.bool) * x,
        lambda x, w: w.to(torch.uint8) * x[:1],  # wraps around
        lambda x, w: w.view(torch.uint8) * x[:1],
        lambda x, w: w.neg() * x[:1],
    ],
)
def test_what_is_refused(fn: Callable[..., torch.Tensor]) -> None:
    region = record(fn, {"x": ROWS, "w": CODES})
    with pytest.raises(NotLowerable):
        lower_region(region)


def _typed(program: TensorProgram, kinds: dict[str, DType], other: DType) -> TensorProgram:
    tensors = tuple(replace(tensor, dtype=kinds.get(tensor.name, other)) for tensor in program.tensors)
    outputs = {value: replace(tensor, dtype=other) for value, tensor in program.outputs.items()}
    return replace(program, tensors=tensors, outputs=outputs)


def test_another_scale_is_refuted() -> None:
    fn, inputs = PROGRAMS["zeros"]
    program = check(fn, inputs).program
    block = as_block(program)
    assert verify_topology(program, block).passed
    ops = tuple(replace(op, value=-127.0) if op.kind is Kind.CONST else op for op in block.ops)
    assert ops != block.ops
    assert not verify_topology(program, replace(block, ops=ops)).passed


def test_conditions_and_numbers_that_are_compared_are_never_written() -> None:
    fn, inputs = PROGRAMS["scaled before"]
    block = as_block(check(fn, inputs).program)
    written = {op.tensor for op in block.ops if op.kind is Kind.STORE}
    assert not list(store_violations(block))
    for dtype in (*READ.keys() - WRITTEN.keys(),):
        tensors = tuple(replace(t, dtype=dtype) if t.name in written else t for t in block.tensors)
        assert any(dtype in one for one in store_violations(replace(block, tensors=tensors)))


@pytest.mark.parametrize("dtype", STORED)
def test_every_number_that_is_stored_is_one_of_every_type(dtype: DType) -> None:
    kind = getattr(torch, STORED[dtype].torch)
    bits = torch.arange(2 if dtype == "bool" else 256, dtype=torch.uint8)
    numbers = bits.to(kind) if dtype in ("bool", "u8") else bits.view(kind)
    numbers = numbers[numbers.double().isfinite()]
    for other in COMPUTED.values():
        assert torch.equal(numbers.to(getattr(torch, other.torch)).double(), numbers.double())
    assert numbers.double().max() == STORED[dtype].largest
    drawn = held(torch.randn(40, 50, dtype=torch.float64) * 3, dtype)
    assert torch.equal(drawn.to(kind).double(), drawn)


@pytest.mark.parametrize("kind", sorted(RAW))
def test_a_text_that_computes_with_them_is_not_read(kind: str) -> None:
    """In Triton an int8 wraps around, over the fields it does not."""
    stored = Floats((4,), kind, None)
    arithmetic = Arithmetic(None)
    for op in ("+", "*", "<"):
        with pytest.raises(Unreadable):
            arithmetic.binary(op, stored, stored)
    with pytest.raises(Unreadable):
        arithmetic.negative(stored)
    with pytest.raises(Unreadable):
        FUNCTIONS["tl.cast"](arithmetic, stored, TritonKind("float16"), bitcast=True)
    if kind in MADE.values():  # of numbers that may not have been whole
        with pytest.raises(Unreadable):
            arithmetic.cast(stored, "float16")
    else:
        assert arithmetic.binary("+", arithmetic.cast(stored, "float16"), 1.0).shape == (4,)


@pytest.mark.parametrize(("weight", "other"), [("i8", "f16"), ("u8", "bf16"), ("f8e4m3", "f16"), ("f8e5m2", "bf16")])
def test_it_compiles(weight: DType, other: DType) -> None:
    x, w = randn(32, 64), torch.ones(48, 64, dtype=torch.int8)
    found = check(lambda x, w, s: x @ (w.to(x.dtype) * s[:, None]).T, {"x": x, "w": w, "s": randn(48)}).program
    block = as_block(_typed(found, {"w": weight}, other))
    source = lower(block, Schedule(tuple((axis, 16) for axis in block.outputs[0].axes), {}))
    assert ".to(tl.float32)" in source.jit
    assert f".to({COMPUTED[other].triton})" in source.jit
    assert ".target sm_90" in compile_for(source, 90).ptx


def test_a_product_with_16_bit_numbers_is_one_of_16_bits() -> None:
    inputs = {"x": randn(32, 64), "w": torch.ones(48, 64, dtype=torch.int8)}
    found = check(lambda x, w: x @ (w.to(x.dtype) * 0.5).T, inputs).program
    assert not Shape(as_block(_typed(found, {"w": "i8"}, "f16"))).is_exact
    assert Shape(as_block(_typed(found, {"w": "i8"}, "f32"))).is_exact
    both = check(lambda x, w: x.float() @ (w.float() * 0.1).T, {**inputs, "x": torch.ones(32, 64, dtype=torch.int8)})
    block = as_block(both.program)
    assert Shape(block).is_exact
    assert 'input_precision="ieee"' in lower(block, Schedule(tuple((a, 16) for a in block.outputs[0].axes), {})).jit


def test_weights_with_scales_of_float32_are_multiplied_in_the_type_of_the_rows() -> None:
    inputs = {"x": randn(32, 64), "w": torch.ones(48, 64, dtype=torch.int8), "s": randn(48)}
    found = check(lambda x, w, s: x @ (w.to(x.dtype) * s[:, None]).T, inputs).program
    kinds: dict[str, DType] = {"w": "i8", "s": "f32"}
    cases: tuple[tuple[DType, bool], ...] = (("bf16", False), ("f32", True))
    for kind, is_exact in cases:
        block = as_block(_typed(found, kinds, kind))
        text = lower(block, Schedule(tuple((axis, 16) for axis in block.outputs[0].axes), {})).jit
        assert Shape(block).is_exact == is_exact
        assert ("input_precision" in text) == is_exact


@pytest.mark.parametrize("dtype", STORED)
def test_the_first_use_draws_them(dtype: DType) -> None:
    names: dict[str, Callable[..., torch.Tensor]] = {}
    exec("import weakref\n" + PRELUDE + MASKS, names)
    tensor = torch.zeros(30, 40, dtype=getattr(torch, STORED[dtype].torch))
    names["_filled"](tensor, 1.0, torch.Generator().manual_seed(0))
    assert tensor.double().unique().numel() == 2 if dtype == "bool" else tensor.double().unique().numel() > 30

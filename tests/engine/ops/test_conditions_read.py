"""Conditions that are arguments: read as 1 or 0, inside of a program, checked as everything else in it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.spec.block import store_violations
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.tiles import Floats
from mugraph.verification.float_inputs import make_inputs
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

MASK = randn(6, 5, seed=3) > 0

PROGRAMS = {
    "where": (
        lambda x, y, m: torch.where(m, x * 2, y),
        {"x": randn(6, 5), "y": randn(6, 5, seed=1), "m": MASK},
    ),
    "where, a number": (lambda x, m: torch.where(m, x, 3.0), {"x": randn(6, 5), "m": MASK}),
    "masked_fill, a row": (lambda x, m: F.silu(x).masked_fill(m, 0.5), {"x": randn(6, 5), "m": MASK[0]}),
    "a factor": (lambda x, m: x * m * 2.0, {"x": randn(6, 5), "m": MASK}),
    "the opposite": (
        lambda x, m, n: torch.where(~m | n, x, 0.0),
        {"x": randn(6, 5), "m": MASK, "n": MASK[:, :1]},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_condition_is_read(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    program = check(fn, inputs).program
    assert "bool" in {tensor.dtype for tensor in program.tensors}
    drawn = make_inputs(program, "rows", torch.Generator().manual_seed(0))
    assert drawn is not None
    for tensor in program.tensors:
        if tensor.dtype == "bool":
            mask = drawn.inputs[tensor.name]
            assert mask.dtype == torch.bool
            assert mask.any()
            assert not mask.all()


def test_what_is_not_chosen_may_be_no_number() -> None:
    x = randn(6, 5).masked_fill(MASK, float("inf"))
    check(lambda x, m: torch.where(m, 1.0, x) * 2.0, {"x": x, "m": MASK})


@pytest.mark.parametrize("fn", [lambda x, m: x.masked_fill(m, float("-inf")) * 0.5, lambda x, m: (x > 0) ^ m])
def test_what_is_refused(fn: Callable[..., torch.Tensor]) -> None:
    region = record(fn, {"x": randn(6, 5), "m": MASK})
    with pytest.raises(NotLowerable):
        lower_region(region)


def test_the_other_choice_is_refuted() -> None:
    fn, inputs = PROGRAMS["where"]
    program = check(fn, inputs).program
    block = as_block(program)
    assert verify_topology(program, block).passed
    one, other = (op for op in program.ops if op.kind is Kind.KEPT)
    exchanged = {
        one.name: replace(one, inputs=(other.inputs[0], one.inputs[1])),
        other.name: replace(other, inputs=(one.inputs[0], other.inputs[1])),
    }
    ops = [exchanged.get(op.name, op) for op in block.ops]
    # The opposite of the condition is computed before both.
    ops.sort(key=lambda op: (op.kind is Kind.STORE, op.name in program.outputs, op.kind is Kind.KEPT))
    assert not verify_topology(program, replace(block, ops=tuple(ops))).passed


def test_a_kernel_never_writes_one() -> None:
    fn, inputs = PROGRAMS["where"]
    block = as_block(check(fn, inputs).program)
    written = {op.tensor for op in block.ops if op.kind is Kind.STORE}
    tensors = tuple(replace(t, dtype="bool") if t.name in written else t for t in block.tensors)
    assert not list(store_violations(block))
    assert any("bool" in one for one in store_violations(replace(block, tensors=tensors)))


def test_a_text_that_computes_with_truth_values_is_not_read() -> None:
    """In Triton 1 + 1 is 1 there, over the fields 2."""
    mask = Floats((4,), "bool", None)
    arithmetic = Arithmetic(None)
    for op in ("+", "*", "<"):
        with pytest.raises(Unreadable):
            arithmetic.binary(op, mask, mask)
    with pytest.raises(Unreadable):
        arithmetic.negative(mask)
    assert arithmetic.binary("+", arithmetic.cast(mask, "float32"), 1.0).shape == (4,)


def test_it_compiles() -> None:
    x = randn(6, 50)
    block = as_block(check(lambda x, m: torch.where(m, x, 0.0).sum(1), {"x": x, "m": x > 0}).program)
    (rows,) = block.outputs[0].axes
    source = lower(block, Schedule(((rows, 4),), {}))
    assert "mask=" in source.jit
    assert ".target sm_90" in compile_for(source, 90).ptx

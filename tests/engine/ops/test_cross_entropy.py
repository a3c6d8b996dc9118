"""Cross-entropy of probabilities, and of classes given by their indices: what stands at an index is a sum over the
classes, in which places are compared with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.units.outside import outside
from mugraph.verification.float_inputs import make_inputs, scenarios
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

X, P = randn(7, 5), torch.softmax(randn(7, 5, seed=1), 1)
WEIGHT = randn(5, seed=2).abs()
CLASSES = torch.tensor([0, 3, 4, -100, 1, 2, 2])

CASES: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "none": {"reduction": "none"},
    "smoothed": {"label_smoothing": 0.1},
}


@pytest.mark.parametrize("name", CASES)
def test_of_probabilities(name: str) -> None:
    check(lambda x, p: F.cross_entropy(x, p, **CASES[name]), {"x": X, "p": P})
    check(lambda x, p, w: F.cross_entropy(x, p, w, **CASES[name]), {"x": X, "p": P, "w": WEIGHT})


def test_one_row_and_images() -> None:
    check(lambda x, p: F.cross_entropy(x, p), {"x": X[0], "p": P[0]})
    image = randn(2, 4, 3)
    check(lambda x, p: F.cross_entropy(x, p), {"x": image, "p": torch.softmax(randn(2, 4, 3, seed=1), 1)})


@pytest.mark.parametrize("name", [*CASES, "another is ignored"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_of_indices(name: str, dtype: torch.dtype) -> None:
    options = CASES.get(name, {"ignore_index": 2})
    target = CLASSES if name in CASES else CLASSES.clamp(0)

    def loss(x: torch.Tensor, t: torch.Tensor, *weight: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, t.long(), *weight, **options)

    inputs = {"x": X, "t": target.to(dtype)}
    program = check(lambda x, t: loss(x, t), inputs).program
    assert program.tensor("t").dtype == ("i64" if dtype.itemsize > 4 else "i32")
    assert verify_topology(program, as_block(program)).passed
    check(lambda x, t, w: loss(x, t, w), {**inputs, "w": WEIGHT})
    region = record(lambda x, t: loss(x, t), inputs)
    assert outside(region) == ()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_of_logarithms(reduction: str) -> None:
    inputs = {"x": X, "t": CLASSES}
    check(lambda x, t: F.nll_loss(F.log_softmax(x, 1), t, reduction=reduction), inputs)
    check(lambda x, t, w: F.nll_loss(x, t, w, reduction=reduction), {**inputs, "w": WEIGHT})


def test_of_one_row_and_of_images_by_indices() -> None:
    check(lambda x, t: F.cross_entropy(x, t), {"x": X[0], "t": torch.tensor(3)})
    check(lambda x, t: F.cross_entropy(x, t), {"x": randn(2, 5, 4), "t": torch.tensor([[0, 4, 1, 1], [2, 3, 0, 4]])})


def _loss(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, t, reduction="none")


def _program() -> TensorProgram:
    return check(_loss, {"x": randn(6, 6), "t": torch.tensor([0, 3, 5, 1, 2, 2])}).program


def _changed(change: Callable[[Op], Op]) -> tuple[TensorProgram, BlockGraph]:
    program = _program()
    block = as_block(program)
    changed = replace(block, ops=tuple(map(change, block.ops)))
    assert changed != block
    return program, changed


MUTANTS: dict[str, Callable[[Op], Op]] = {
    "the next class": lambda op: replace(op, value=1.0) if op.kind is Kind.POSITION else op,
    "another index is ignored": lambda op: replace(op, value=-99.0) if op.value == -100.0 else op,
    "all classes from there": lambda op: replace(op, kind=Kind.GREATER_EQUAL) if op.kind is Kind.EQUAL else op,
    "the element without a condition": lambda op: replace(op, kind=Kind.MUL) if op.kind is Kind.KEPT else op,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_losses_are_rejected(name: str) -> None:
    assert not verify_topology(*_changed(MUTANTS[name])).passed


def test_the_wrong_axis_is_rejected() -> None:
    """Rows and classes are equally many here."""
    program = _program()
    block = as_block(program)
    (place,) = (op for op in block.ops if op.kind is Kind.POSITION)
    (rows,) = block.outputs[0].axes
    wrong = replace(place, rows=(rows,), axes=(rows,))
    users = {op.name for op in block.ops if place.name in op.inputs}
    ops: list[Op] = []
    for op in block.ops:
        op = wrong if op is place else replace(op, axes=(rows,)) if op.name in users else op
        ops.append(op)
    assert not verify_topology(program, replace(block, ops=tuple(ops))).passed


def test_targets_are_classes() -> None:
    """In the float test: each class is drawn, and what is ignored."""
    program = check(_loss, {"x": randn(60, 6), "t": torch.arange(60) % 6}).program
    for scenario in scenarios(program):
        drawn = make_inputs(program, scenario, torch.Generator().manual_seed(0))
        if drawn is None:
            continue
        target = drawn.inputs["t"]
        assert target.dtype == torch.int64
        assert set(target.tolist()) <= {-100, *range(6)}
        if scenario == "normal":
            assert set(target.tolist()) == {-100, *range(6)}


def test_indices_are_only_compared() -> None:
    for fn in (lambda x, t: x * t[:, None], lambda x, t: x * (t + 1)[:, None], lambda x, t: x + (t[:, None] > x)):
        with pytest.raises(NotLowerable, match="i64"):
            lower_region(record(fn, {"x": X, "t": CLASSES}))


def test_it_compiles() -> None:
    program = check(_loss, {"x": randn(8, 50), "t": torch.arange(8)}).program
    block = as_block(program)
    (rows,) = block.outputs[0].axes
    source = lower(block, Schedule(((rows, 4),), {}))
    assert "== offs_c[None, :]" in source.jit
    assert ".target sm_90" in compile_for(source, 90).ptx

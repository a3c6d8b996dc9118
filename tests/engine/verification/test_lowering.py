"""Tensor programs beside the recorded calls they were made of: right ones are accepted, wrong rules are seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ir.region import SearchUnit
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import entries
from mugraph.ops.algebra.rows import Rows
from mugraph.ops.families import norm
from mugraph.trace.regions.replay import replay
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.lowering.run import beside_calls

from tests.engine.ops.harness import evaluate, randn
from tests.engine.ops.rule_programs import TARGETS, RuleProgram, rule_program
from tests.engine.verification.lowering_mutants import mutants
from tests.engine.verification.recorded_units import unit_from, unit_of

X, Y = randn(6, 8), randn(6, 8, seed=1)
RULES = list({entries()[target].rule: target for target in TARGETS}.values())
"""A call for each rule."""


Two = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def unit_of_two(fn: Two) -> SearchUnit:
    return unit_from(fn, x=X, y=Y)


def found(fn: Two) -> LoweringResult:
    return beside_calls(unit_of_two(fn), 0)


# What was wrong before


@pytest.mark.usefixtures("a_cast_is_nothing")
def test_a_cast_to_truth_values_is_no_cast() -> None:
    result = found(lambda x, y: x.to(torch.bool) * torch.exp(x))
    assert result.passed is False
    assert "other numbers" in result.reason


def test_statistics_of_a_part_are_no_statistics_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_part(b: Builder, operand: Any, dims: AtomDims, over: AtomDim) -> Rows:
        atoms = b.atoms
        inner = [atoms.sections[atom].inner if atom in atoms.sections else (atom,) for atom in atoms.resolve(over)]
        return Rows(b, (b.at(operand, dims),), tuple(atom for run in inner for atom in run))

    def half(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (8,), eps=1e-3)[:, 4:] * y[:, 4:]

    assert found(half).passed
    monkeypatch.setattr(norm, "rows", of_the_part)
    assert found(half).passed is False


# Every rule


def programs_of(target: str, count: int, *, whole: bool) -> Iterator[tuple[RuleProgram, SearchUnit]]:
    rng = random.Random(f"lowering of {target}, {whole}")
    for _ in range(count):
        program = rule_program(target, rng, whole=whole)
        if isinstance(program, str):
            continue
        try:
            yield program, unit_of(program.calls, program.values, program.live_ins, [program.output])
        except NotLowerable:
            continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_right_rules_are_accepted(target: str) -> None:
    for whole in (True, False):
        for program, unit in programs_of(target, 2, whole=whole):
            result = beside_calls(unit, 0)
            assert result.passed, (program.drawn, result)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", RULES)
def test_wrong_programs_are_refused(target: str) -> None:
    """All that are other programs: on numbers drawn here, evaluated by the tests' own arithmetic."""
    for program, unit in programs_of(target, 2, whole=True):
        inputs = unit_inputs(unit, program.tensors)
        (right,) = evaluate(unit.program, inputs).values()
        for what, wrong in mutants(unit.program):
            (other,) = evaluate(wrong, inputs).values()
            differs = not torch.allclose(other, right, rtol=1e-6, atol=1e-9, equal_nan=True)
            if differs and bool(other.isfinite().all()):
                result = beside_calls(replace(unit, program=wrong), 0)
                assert not result.passed, f"{what}: {program.drawn}"
                assert result.passed is False or "told" in result.reason


def unit_inputs(unit: SearchUnit, tensors: Mapping[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    wide = {number: t.double() if t.is_floating_point() else t for number, t in tensors.items()}
    values = replay(unit.views, wide)
    return {name: values[value] for name, value in unit.inputs.items()}


# Rules that are wrong in a way of their own

Rule = Callable[[Builder, Arguments, AtomDims], Node]


def exchanged(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.div(b.broadcast(args.operand("other"), dims), b.broadcast(args.operand("input"), dims))


def without_the_mean(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    square = b.sum(b.mul(x, x), dims[-1])
    return b.div(x, b.sqrt(b.add(b.mul(b.const(1 / 8), square), b.const(1e-5))))


def without_the_smallest(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    return b.div(x, b.sqrt(b.mul(b.const(1 / 8), b.sum(b.mul(x, x), dims[-1]))))


def along_another_axis(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    e = b.exp(b.at(args.ref("input"), dims))
    return b.div(e, b.sum(e, dims[0]))


def not_at_all(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.at(args.ref("input"), dims)


def as_a_line(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.const(0.5), b.at(args.ref("input"), dims))


WRONG_RULES: dict[str, tuple[str, Rule, Two]] = {
    "a quotient the other way round": ("torch.div", exchanged, lambda x, y: torch.div(x, y)),
    "a layer norm without its mean": (
        "torch.nn.functional.layer_norm", without_the_mean, lambda x, y: F.layer_norm(x, (8,)) * y
    ),
    "a norm without its least square": (
        "torch.nn.functional.rms_norm", without_the_smallest, lambda x, y: F.rms_norm(x, (8,), eps=1e-6) * y
    ),
    "a softmax along another axis": ("torch.softmax", along_another_axis, lambda x, y: torch.softmax(x, -1) * y),
    "a transpose of a square that is none": (
        "Tensor.transpose", not_at_all, lambda x, y: x[:, :6].transpose(0, 1) * y[:, :6]
    ),
    "an absolute value that is none": ("Tensor.abs", not_at_all, lambda x, y: x.abs() * y),
    "a sigmoid that is its tangent": ("torch.sigmoid", as_a_line, lambda x, y: torch.sigmoid(x) * y),
    "a limit that is none": ("torch.clamp", not_at_all, lambda x, y: torch.clamp(x, -2.0, 2.0) * y),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_RULES)
def test_wrong_rules_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, rule, fn = WRONG_RULES[name]
    assert found(fn).passed
    monkeypatch.setitem(entries(), target, replace(entries()[target], rule=rule))
    result = found(fn)
    assert result.passed is False, result


# What is accepted


def rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(x.float().reshape(6, 4, 2))
    return torch.view_as_real(pairs * angles).flatten(1).type_as(x)


def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * 2.0
    z += y
    z.mul_(y)
    return z.relu_() + y


def masked(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.mT * 0.125).masked_fill(~mask, -1e4)
    return torch.softmax(scores.float(), -1).to(q.dtype) @ k


def causal(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    return torch.softmax((q @ k.mT).masked_fill(hidden, float("-inf")), -1) @ k


def dequantised(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ (w.to(x.dtype) * scale).mT


def classes(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, labels, ignore_index=-100)


def narrow(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (w * y.to(torch.bfloat16)).half().to(torch.bfloat16) + x


def evaluated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    mean, var = y[0], y[1].abs()
    return F.dropout(F.batch_norm(x, mean, var, training=False), 0.5, training=False) * y


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x @ y) * 2.0


def times_exp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.exp(x) * y


def logarithms(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.log(x) * y


def roots(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(x) / (x + 1.0) * y


def larger(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y > 0.0) * torch.exp(x)


ACCEPTED: dict[str, tuple[Callable[..., torch.Tensor], dict[str, torch.Tensor]]] = {
    "rotations as complex numbers": (rotated, {"x": X.bfloat16(), "angles": torch.polar(torch.ones(6, 4), X[:, :4])}),
    "written in place": (in_place, {"x": X, "y": Y}),
    "a random mask": (masked, {"q": X.half(), "k": Y.half(), "mask": torch.rand(6, 6) > 0.5}),
    "a causal mask": (causal, {"q": X, "k": Y}),
    "weights of eight bits": (
        dequantised, {"x": X.half(), "w": torch.randint(-9, 9, (4, 8), dtype=torch.int8), "scale": X[:4, :1].half()}
    ),
    "classes": (classes, {"logits": X, "labels": torch.tensor([1, 2, -100, 3, 0, 7])}),
    "sixteen bits and back": (narrow, {"x": X.bfloat16(), "w": Y[0].bfloat16()}),
    "dropout and batch norm in eval": (evaluated, {"x": X, "y": Y}),
    "columns of a transposed tensor": (product, {"x": X, "y": randn(5, 8).t()}),
    "one row for all": (times_exp, {"x": X, "y": Y[:1].expand(6, 8)}),
    "logarithms": (logarithms, {"x": X.abs(), "y": Y}),
    "roots": (roots, {"x": X.abs(), "y": Y}),
    "a condition that is met exactly": (larger, {"x": X, "y": Y}),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_right_programs_are_accepted(name: str) -> None:
    fn, inputs = ACCEPTED[name]
    result = beside_calls(unit_from(fn, **inputs), 0)
    assert result.passed, result
    assert result.error < 1e-9


# What is said


def test_what_differs_is_named() -> None:
    unit = unit_of_two(lambda x, y: torch.exp(x) * y)
    ops = tuple(replace(op, kind=Kind.ADD) if op.kind is Kind.MUL else op for op in unit.program.ops)
    result = beside_calls(replace(unit, program=replace(unit.program, ops=ops)), 0)
    assert (result.output, result.value) == (next(iter(unit.outputs)), unit.outputs[result.output])
    assert "where the calls give" in result.reason


def test_calls_that_pytorch_does_not_run_are_not_checked() -> None:
    unit = unit_of_two(lambda x, y: torch.exp(x) * y)
    calls = tuple(replace(call, kwargs={"nonsense": 1}) for call in unit.calls)
    result = beside_calls(replace(unit, calls=calls), 0)
    assert result.passed is None
    assert "PyTorch does not run them here" in result.reason


def test_values_of_which_nothing_is_known_are_not_checked() -> None:
    unit = unit_of_two(lambda x, y: torch.exp(x) * y)
    result = beside_calls(replace(unit, values={value: unit.values[value] for value in unit.outputs.values()}), 0)
    assert result.passed is None


def test_a_softmax_may_leave_the_range_of_its_program() -> None:
    """The program has no maximum that is subtracted; a kernel has."""

    def steep(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 300.0, -1) * y

    assert found(steep).passed


def test_what_is_never_a_number_is_wrong() -> None:
    unit = unit_of_two(lambda x, y: torch.exp(x) * y)
    ops = tuple(replace(op, kind=Kind.UNARY, fn="relu") if op.kind is Kind.EXP else op for op in unit.program.ops)
    ops = tuple(replace(op, kind=Kind.DIV) if op.kind is Kind.MUL else op for op in ops)
    assert beside_calls(replace(unit, program=replace(unit.program, ops=ops)), 0).passed is False

"""Maxima over finite fields: random orders keep what holds for maxima, and tell wrong graphs from right ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import LARGEST, Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block, check_program
from mugraph.search.schedules.splits import cuts
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.verifier import verify_schedule, verify_topologies, verify_topology

from tests.engine.verification.graphs import Builder, tensor
from tests.engine.verification.graphs_maxima import late_maximum, scaled_linear
from tests.engine.verification.mutants import mutants, retyped

CASES = {"in the loop": scaled_linear, "after the loop": late_maximum}


@pytest.mark.parametrize("name", CASES)
def test_right_graphs_pass(name: str) -> None:
    case = CASES[name]()
    assert check_program(case.program) == check_block(case.block) == []
    verdict = verify_topology(case.program, case.block, seed=0)
    assert verdict.passed, verdict.reason
    assert not verdict.lax
    assert verdict.bound is None
    assert verdict.repetitions == 32


@pytest.mark.parametrize("name", CASES)
def test_mutants_are_killed(name: str) -> None:
    """Dropped maxima, sums for maxima, maxima for sums and all else that is done to graphs without maxima."""
    case = CASES[name]()
    found = list(mutants(case.block))
    assert sum(any(word in what for word in ("largest", "add up", "sum in place")) for what, _ in found) >= 3
    passed = {what for what, mutant in found if verify_topology(case.program, mutant, seed=1).passed}
    assert passed <= {"accumulate acc behind its users"}  # a division by what the loop does not change


def test_split_over_the_grid_parts_of_maxima_are_joined_by_a_maximum() -> None:
    case = scaled_linear()
    (cut,) = cuts(case.block)
    first, second = cut.at(4)
    assert verify_topologies(case.program, [(first, None), (second, None)], seed=0).passed
    summed = tuple(replace(op, kind=Kind.SUM) if op.kind is Kind.AMAX else op for op in second.ops)
    assert summed != second.ops
    assert not verify_topologies(case.program, [(first, None), (replace(second, ops=summed), None)], seed=0).passed


def small(build: str) -> tuple[TensorProgram, BlockGraph]:
    """A value of x and y, [m, n], as a program and as a block graph. build: which"""
    sizes = {"m": 32, "n": 32}
    x, y, out = (tensor(name, "m n", sizes) for name in ("x", "y", "out"))
    b = Builder()
    b.load("x", x), b.load("y", y), b.const("zero", 0.0), b.const("minus", -1.0), b.const("two", 2.0)
    match build:
        case "relu":
            b.ew("r", Kind.MAX, "x", "zero"), b.ew("v", Kind.ADD, "r", "y")
        case "no relu":
            b.ew("v", Kind.ADD, "x", "y")
        case "relu of the other":
            b.ew("r", Kind.MAX, "y", "zero"), b.ew("v", Kind.ADD, "r", "x")
        case "max":
            b.ew("v", Kind.MAX, "x", "y")
        case "max, exchanged, twice":
            b.ew("r", Kind.MAX, "y", "x"), b.ew("v", Kind.MAX, "r", "x")
        case "min":
            b.ew("a", Kind.MUL, "x", "minus"), b.ew("b", Kind.MUL, "y", "minus")
            b.ew("r", Kind.MAX, "a", "b"), b.ew("v", Kind.MUL, "r", "minus")
        case "sum":
            b.ew("v", Kind.ADD, "x", "y")
        case "max of halves":
            b.ew("a", Kind.MUL, "x", "two"), b.ew("r", Kind.MAX, "a", "y"), b.ew("v", Kind.DIV, "r", "two")
        case "max of a sum":
            b.ew("a", Kind.ADD, "x", "y"), b.ew("v", Kind.MAX, "a", "y")
        case _:
            raise AssertionError(build)
    program = TensorProgram("small", sizes, (x, y), tuple(b.ops), {"v": out})
    stored = (*b.ops, Op("store", Kind.STORE, ("v",), ("m", "n"), tensor="out"))
    return program, BlockGraph("small", sizes, (x, y, out), stored)


@pytest.mark.parametrize(
    ("program", "block", "same"),
    [
        ("relu", "relu", True),
        ("max", "max, exchanged, twice", True),
        ("relu", "no relu", False),
        ("no relu", "relu", False),
        ("relu", "relu of the other", False),
        ("max", "min", False),
        ("min", "max", False),
        ("max", "sum", False),
        ("sum", "max", False),
        ("max", "max of halves", False),
        ("max", "max of a sum", False),
    ],
)
def test_pairs(program: str, block: str, same: bool) -> None:
    for seed in range(5):
        assert verify_topology(small(program)[0], small(block)[1], seed=seed).passed is same


@pytest.mark.parametrize("name", CASES)
def test_maxima_are_scaled_and_shifted_in_tiles(name: str) -> None:
    """max(x / 2) is max(x) / 2 in any tiles, and with its own tiles at full size: 0.5 is the least of either."""
    case = CASES[name]()
    halved: list[Op] = []
    for op in case.block.ops:
        if op.name == "limited":
            halved += [Op("half", Kind.CONST, value=0.5), replace(op, inputs=("twice", "half"))]
        elif op.kind is Kind.MAX:
            halved += [replace(op, name="large"), Op("two", Kind.CONST, value=2.0)]
            halved.append(Op("magnitude", Kind.MUL, ("large", "two"), op.axes))
        else:
            halved.append(op)
            if op.name == "top":
                halved += [Op("a_half", Kind.CONST, value=0.5), Op("twice", Kind.MUL, ("top", "a_half"), op.axes)]
    block = replace(case.block, ops=tuple(halved))
    assert check_block(block) == []
    found = verify_topology(case.program, block, seed=0)
    assert found.passed, found.reason
    schedule = Schedule((("m", 32), ("n", 64)), {"h": 128})
    found = verify_schedule(case.program, block, schedule, seed=0)
    assert found.passed, found.reason
    spoilt = replace(block, ops=tuple(replace(op, value=0.25) if op.name == "a_half" else op for op in block.ops))
    assert not verify_topology(case.program, spoilt).passed
    assert not verify_schedule(case.program, spoilt, schedule).passed


def test_a_maximum_is_of_a_total_order_of_each_seed() -> None:
    rng = np.random.default_rng(0)
    field = FieldArithmetic(rng, 8)
    a, b, c = (field.draw(rng, (200,)) for _ in range(3))

    def same(x: FieldValue, y: FieldValue) -> bool:
        return not field.differs(x, y).any()

    assert same(field.maximum(a, a), a)
    assert same(field.maximum(a, b), field.maximum(b, a))
    assert same(field.maximum(field.maximum(a, b), c), field.maximum(a, field.maximum(b, c)))
    chosen = field.maximum(a, b)
    assert chosen.q is not None  # both components of one of them, never one of each
    assert a.q is not None
    assert b.q is not None
    of_a = chosen.p == a.p
    assert (chosen.q == np.where(of_a, a.q, b.q)).all()
    assert 0.4 < of_a.mean() < 0.6
    whole = field.rearrange(a, lambda array: array.reshape(8, 10, 20))
    rows = field.amax(field.amax(whole, (2,)), (1,))
    assert same(rows, field.amax(whole, (1, 2)))


def test_orders_differ_between_seeds() -> None:
    rng = np.random.default_rng(1)
    field = FieldArithmetic(rng, 64)
    one, other = (FieldValue(np.full((64, 1), value), None) for value in (3, 5))
    larger = field.maximum(one, other).p[:, 0]
    assert 16 < (larger == 3).sum() < 48


def test_an_accumulator_knows_sums_and_maxima_only() -> None:
    block = scaled_linear().block
    odd = tuple(replace(op, fn="min") if op.fn == LARGEST else op for op in block.ops)
    assert any("knows no min" in said for said in check_block(replace(block, ops=retyped(list(odd), block))))

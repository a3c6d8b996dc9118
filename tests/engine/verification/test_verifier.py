"""Right graphs pass with the evidence they earn; indexing mistakes and unearned bounds do not pass."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest
from mugraph.ir.block import Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.verification.bound import theorem_2
from mugraph.verification.verifier import verify_schedule, verify_topology

from tests.engine.verification.graphs import CASES, Builder, attention, gated_mlp, lora, rms_norm_linear, tensor
from tests.engine.verification.mutants import retyped


@pytest.mark.parametrize("name", CASES)
def test_right_graphs_pass_with_fresh_randomness(name: str) -> None:
    case = CASES[name]()
    verdict = verify_topology(case.program, case.block)
    assert verdict.passed, verdict.reason
    assert verdict.lax
    assert verdict.repetitions >= 8
    first, second = verdict.sizes
    assert all(first[axis] != second[axis] for axis in first)
    has_sqrt = any(op.kind is Kind.SQRT for op in case.program.ops)
    assert (verdict.bound is None) == has_sqrt
    assert verdict.bound is None or verdict.bound <= 1e-9


def test_rms_norm_linear_is_fast() -> None:
    case = rms_norm_linear()
    verify_topology(case.program, case.block)
    started = process_time()
    verify_topology(case.program, case.block)
    assert process_time() - started < 0.2


def test_attention_repeats_until_the_bound() -> None:
    case = attention()
    verdict = verify_topology(case.program, case.block, seed=0)
    # Four keys: sums of two exponents out of four, with repetition.
    assert verdict.bound_note is not None
    assert "k = 10" in verdict.bound_note
    assert verdict.repetitions >= 100


def test_theorem_2_asks_for_the_repetitions_of_the_design() -> None:
    for terms, repetitions in ((1, 2), (2, 4), (3, 9), (4, 16), (8, 64)):
        one = theorem_2(4, terms)
        # 2^-30 per exponential at best: within one repetition of 1e-9.
        assert one ** (repetitions + 1) <= 1e-9 < one ** (repetitions - 1)


def test_functions_outside_the_fragment_earn_no_bound() -> None:
    case = gated_mlp()
    program = replace(case.program, ops=tuple(replace(op, fn="relu") if op.fn else op for op in case.program.ops))
    block = replace(case.block, ops=tuple(replace(op, fn="relu") if op.fn else op for op in case.block.ops))
    verdict = verify_topology(program, block)
    assert verdict.passed
    assert not verdict.lax
    assert verdict.bound is None
    assert "relu" in (verdict.bound_note or "")


def test_square_root_of_a_square_is_known() -> None:
    """x / sqrt(s) / sqrt(s) = x / s needs residues: sqrt(s)^2 = s."""
    sizes = {"b": 16, "h": 64}
    x, o = tensor("x", "b h", sizes), tensor("o", "b h", sizes)
    p = Builder()
    p.load("x", x), p.ew("sq", Kind.MUL, "x", "x"), p.reduce("s", Kind.SUM, "sq", over="h")
    p.ew("r", Kind.SQRT, "s"), p.ew("once", Kind.DIV, "x", "r"), p.ew("out", Kind.DIV, "once", "r")
    program = TensorProgram("twice", sizes, (x,), tuple(p.ops), {"out": o})
    b = Builder()
    b.load("x", x), b.ew("sq", Kind.MUL, "x", "x"), b.reduce("s", Kind.SUM, "sq", over="h")
    b.ew("out", Kind.DIV, "x", "s"), b.store("out", o)
    block = replace(rms_norm_linear().block, sizes=sizes, tensors=(x, o), ops=tuple(b.ops), loops=())
    for seed in range(5):
        verdict = verify_topology(program, block, seed)
        assert verdict.passed, verdict.reason


def test_a_second_exponential_on_a_path_is_not_lax() -> None:
    sizes = {"b": 16, "h": 64}
    x, o = tensor("x", "b h", sizes), tensor("o", "b h", sizes)
    p = Builder()
    p.load("x", x), p.ew("e", Kind.EXP, "x"), p.ew("out", Kind.EXP, "e")
    program = TensorProgram("exp_exp", sizes, (x,), tuple(p.ops), {"out": o})
    p.store("out", o)
    block = replace(rms_norm_linear().block, sizes=sizes, tensors=(x, o), ops=tuple(p.ops), loops=())
    verdict = verify_topology(program, block)
    assert verdict.passed
    assert not verdict.lax
    assert verdict.bound is None
    assert not program.is_lax


def test_partial_sums_over_the_grid_are_rejected() -> None:
    case = lora()
    for grid, told in ((("m", "r"), "written"), (("m", "n", "k"), "looped")):
        verdict = verify_topology(case.program, case.block, grid=grid)
        # r is summed inside a block: with r on the grid, blocks hold parts of the sum.
        assert not verdict.passed
        assert told in (verdict.reason or "")


def test_loops_that_are_no_nest_are_rejected() -> None:
    case = CASES["gemm_chain"]()
    siblings = replace(case.block, loops=(Loop("n"), Loop("k")))
    verdict = verify_topology(case.program, siblings)
    assert not verdict.passed
    assert "nest" in (verdict.reason or "")


def test_a_count_of_iterations_is_no_constant() -> None:
    """2 * x against accumulating x twice: right at two iterations, wrong as a graph."""
    sizes = {"b": 16, "h": 64}
    x, y, o = tensor("x", "b", sizes), tensor("y", "b h", sizes), tensor("o", "b", sizes)
    p = Builder()
    p.load("x", x), p.load("y", y), p.const("two", 2.0), p.ew("xx", Kind.MUL, "x", "two")
    p.reduce("s", Kind.SUM, "y", over="h"), p.ew("out", Kind.ADD, "xx", "s")
    program = TensorProgram("count", sizes, (x, y), tuple(p.ops), {"out": o})
    b = Builder()
    b.load("x", x), b.load("y", y), b.accum("xx", "x", "h")
    b.reduce("part", Kind.SUM, "y", over="h"), b.accum("s", "part", "h"), b.ew("out", Kind.ADD, "xx", "s")
    b.store("out", o)
    block = replace(case_block(), sizes=sizes, tensors=(x, y, o), ops=tuple(b.ops), loops=(Loop("h"),))
    assert not verify_topology(program, block).passed


def case_block():
    return rms_norm_linear().block


def test_schedules_are_executed_at_their_own_sizes() -> None:
    case = rms_norm_linear()
    sizes = {"b": 5, "h": 96, "n": 70}
    program, block = resize(case.program, sizes), resize_block(case.block, sizes)
    good = Schedule(grid=(("n", 16), ("b", 2)), loops={"h": 32})
    assert verify_schedule(program, block, good).passed
    bad = Schedule(grid=(("n", 16), ("h", 32)), loops={})
    verdict = verify_schedule(program, block, bad)
    assert not verdict.passed
    assert verdict.reason


def test_an_output_that_is_not_written_is_rejected() -> None:
    case = lora()
    ops = tuple(op for op in case.block.ops if op.kind is not Kind.STORE)
    verdict = verify_topology(case.program, replace(case.block, ops=ops))
    assert not verdict.passed
    assert "outputs" in (verdict.reason or "")


def test_axes_that_lie_are_rejected() -> None:
    case = lora()
    ops = tuple(replace(op, axes=("m",)) if op.name == "both" else op for op in case.block.ops)
    verdict = verify_topology(case.program, replace(case.block, ops=ops))
    assert not verdict.passed
    assert "axes" in (verdict.reason or "")


def test_partial_sums_do_not_mix_with_elements() -> None:
    """A tile kept by an accumulator holds sums over iterations, not the axis's elements."""
    case = rms_norm_linear()
    ops: list[Op] = []
    for op in case.block.ops:
        if op.name == "ss_part":
            ops.append(Op("tile", Kind.ACCUM, ("sq",), (), ("h",)))
            ops.append(Op("mixed", Kind.MUL, ("tile", "x")))
            ops.append(replace(op, inputs=("mixed",)))
        else:
            ops.append(op)
    verdict = verify_topology(case.program, replace(case.block, ops=retyped(ops, case.block)))
    assert not verdict.passed
    assert "partial sums" in (verdict.reason or "")

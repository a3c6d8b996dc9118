"""Maxima in the search: their normal form, and every topology found computes the program."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from mugraph.ir.ops import LARGEST, Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block, check_program
from mugraph.search import Limits, Search
from mugraph.search.algebra.abstract import Algebra
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.sites import Sites

from tests.engine.research.compared import literal, once, resized, searched
from tests.engine.search.random_programs import live
from tests.engine.search.workloads import Builder
from tests.support.tile_evaluator import check_axes, evaluate_block, evaluate_program, random_inputs, small_schedule

KINDS = (Kind.MAX, Kind.MAX, Kind.AMAX, Kind.AMAX, Kind.ADD, Kind.MUL, Kind.DIV, Kind.SUM, Kind.DOT)


def amax(b: Builder, name: str, a: str, *over: str) -> str:
    axes = tuple(axis for axis in next(op.axes for op in b.ops if op.name == a) if axis not in over)
    return b._op(name, Kind.AMAX, (a,), axes, over=tuple(sorted(over)))


def scaled_linear(m: int = 4, h: int = 4, n: int = 4) -> TensorProgram:
    """x / max(amax |x|, c) @ w."""
    b = Builder("scaled_linear", m=m, h=h, n=n)
    x, w = b.input("x", "m", "h"), b.input("w", "h", "n")
    size = b.elementwise(Kind.MAX, "size", x, b.mul("minus_x", x, b.const("minus", -1.0)))
    limited = b.elementwise(Kind.MAX, "limited", amax(b, "top", size, "h"), b.const("least", 0.5))
    return b.program(b.dot("y", b.div("scaled", x, limited), w, "h"), "m", "n")


def maxout() -> TensorProgram:
    b = Builder("maxout", m=4, h=4, n=4)
    x, w, v = b.input("x", "m", "h"), b.input("w", "h", "n"), b.input("v", "h", "n")
    a, c = b.dot("a", x, w, "h"), b.dot("c", x, v, "h")
    return b.program(amax(b, "y", b.elementwise(Kind.MAX, "larger", a, c), "n"), "m")


def test_maxima_are_associative_commutative_and_idempotent() -> None:
    algebra = Algebra()
    a, b, c = (algebra.atom(name) for name in "abc")
    ab, bc = algebra.maximum(a, b), algebra.maximum(b, c)
    assert ab == algebra.maximum(b, a) != bc
    assert algebra.maximum(ab, c) == algebra.maximum(a, bc) == algebra.maximum(ab, bc)
    assert algebra.maximum(a, a) == a
    assert algebra.maximum(ab, a) == ab
    assert algebra.amax(2, algebra.amax(3, a)) == algebra.amax(6, a) != algebra.amax(3, a)
    assert algebra.amax(2, ab) == algebra.maximum(algebra.amax(2, a), algebra.amax(2, b))
    # No law of sums, products or quotients: in a random order there is none.
    assert algebra.maximum(algebra.add(a, c), algebra.add(b, c)) != algebra.add(ab, c)
    assert algebra.maximum(algebra.mul(a, c), algebra.mul(b, c)) != algebra.mul(ab, c)
    assert algebra.sum(2, ab) != algebra.maximum(algebra.sum(2, a), algebra.sum(2, b))


def test_parts_of_maxima_are_subexpressions() -> None:
    algebra = Algebra()
    a, b, c = (algebra.atom(name) for name in "abc")
    whole = algebra.mul(algebra.amax(6, algebra.maximum(algebra.mul(a, b), c)), b)
    parts = [
        a, c, algebra.mul(a, b), algebra.maximum(algebra.mul(a, b), c), algebra.amax(2, c), algebra.amax(3, c),
        algebra.maximum(algebra.amax(2, algebra.mul(a, b)), algebra.amax(6, c)),
    ]  # fmt: skip
    assert all(algebra.sub(part, whole) for part in parts)
    others = [
        algebra.maximum(a, c), algebra.amax(5, c), algebra.amax(12, c), algebra.add(a, c), algebra.sum(2, c),
        algebra.mul(algebra.amax(2, c), b),
    ]  # fmt: skip
    assert not any(algebra.sub(other, whole) for other in others)
    assert "max6·(c)" in algebra.text(whole)


@pytest.mark.parametrize("make", [scaled_linear, maxout])
def test_marks_rule_no_maximum_out_that_leads_on(make: Callable[[], TensorProgram]) -> None:
    program = make()
    frame = Frame(program, ("h",), Algebra())
    algebra, goal = frame.algebra, frame.values[next(iter(program.outputs))].nf
    sites = Sites(algebra, goal)
    pool = list(frame.landmarks())
    pool += [algebra.amax(prime, nf) for prime in frame.primes for nf in pool]
    led = 0
    for x, y in itertools.combinations(dict.fromkeys(pool), 2):
        if algebra.sub(algebra.maximum(x, y), goal):
            assert sites.marks(x).part & sites.marks(y).part
            led += 1
    assert led


def random_program(seed: int) -> TensorProgram:
    """Three to six operators over three axes, a maximum among those of use."""
    rng = random.Random(seed)
    b = Builder(f"random_{seed}", a=4, b=4, c=4)
    values = [b.input(f"t{i}", *rng.sample("abc", rng.randint(1, 2))) for i in range(3)]
    axes = {op.name: op.axes for op in b.ops}
    for i in range(rng.randint(3, 6)):
        x, y, kind = rng.choice(values[-3:]), rng.choice(values), rng.choice(KINDS)
        shared = sorted(set(axes[x]) & set(axes[y]))
        if kind is Kind.DOT and shared:
            name = b.dot(f"v{i}", x, y, rng.choice(shared))
        elif kind is Kind.SUM and axes[x]:
            name = b.sum(f"v{i}", x, rng.choice(axes[x]))
        elif kind is Kind.AMAX and axes[x]:
            name = amax(b, f"v{i}", x, rng.choice(axes[x]))
        else:
            name = b.elementwise(kind if kind in (Kind.ADD, Kind.MUL, Kind.DIV) else Kind.MAX, f"v{i}", x, y)
        values.append(name)
        axes[name] = b.ops[-1].axes
    program = b.program(values[-1], *axes[values[-1]])
    ops = live(program)
    used = {op.tensor for op in ops if op.kind is Kind.LOAD}
    return replace(program, ops=ops, tensors=tuple(tensor for tensor in program.tensors if tensor.name in used))


def is_interesting(program: TensorProgram) -> bool:
    ops = program.compute_ops
    return len(ops) > 1 and any(
        op.kind in (Kind.MAX, Kind.AMAX) and len(set(op.inputs)) == len(op.inputs) for op in ops
    )


def check(program: TensorProgram, limits: Limits) -> list[tuple[Op, ...]]:
    """Every topology is right at signed inputs, tile by tile."""
    assert check_program(program) == []
    inputs = {name: 2 * array - 2 for name, array in random_inputs(program, 1).items()}
    expected = evaluate_program(program, inputs)
    blocks = [found.block for found in Search(program, limits).run()]
    assert blocks, program.name
    for block in blocks:
        assert check_block(block) == []
        check_axes(block)
        result = evaluate_block(block, small_schedule(block), inputs)
        np.testing.assert_allclose(result, expected, rtol=1e-7, err_msg=f"{program.name}: {block.ops}")
    return [block.ops for block in blocks]


@pytest.mark.parametrize("make", [scaled_linear, maxout])
def test_loops_keep_the_largest(make: Callable[[], TensorProgram]) -> None:
    topologies = check(make(), Limits(seconds=20.0))
    assert any(op.kind is Kind.ACCUM and op.fn == LARGEST for ops in topologies for op in ops)


def test_every_topology_of_random_programs_is_right() -> None:
    programs = [program for seed in range(140) if is_interesting(program := random_program(seed))][:40]
    assert len(programs) == 40
    largest = 0
    for program in programs:
        for ops in check(program, Limits(seconds=4.0, max_topologies=8)):
            largest += any(op.fn == LARGEST for op in ops)
    assert largest > 20


def test_the_literal_algorithm_finds_the_same() -> None:
    compared = 0
    for seed in range(200, 260):
        program = resized(random_program(seed), 2)
        if not is_interesting(program) or len(program.compute_ops) > 3:
            continue
        limit = len(program.compute_ops) + 1
        expected = literal(program, limit, prefixes=4000)
        if expected is not None:
            assert once(searched(program, limit)) == once(expected), program
            compared += 1
    assert compared >= 10

"""Roots are taken of nothing that may be negative where the program's own roots have numbers."""

from __future__ import annotations

import numpy as np
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, topologies

from tests.engine.search.workloads import Builder
from tests.support.tile_evaluator import evaluate_block, evaluate_program, small_schedule


def roots_of(program: TensorProgram) -> set[str]:
    """Operands of roots in all topologies, and every topology right for inputs of both signs."""
    random = np.random.default_rng(1)
    inputs = {t.name: random.standard_normal([program.sizes[a] for a in t.axes]) for t in program.tensors}
    with np.errstate(invalid="ignore"):
        expected = evaluate_program(program, inputs)
    found: set[str] = set()
    for topology in topologies(program, Limits(seconds=2.0, max_topologies=40)):
        block = topology.block
        found |= {op.inputs[0] for op in block.ops if op.kind is Kind.SQRT}
        with np.errstate(invalid="ignore"):
            result = evaluate_block(block, small_schedule(block), inputs)
        np.testing.assert_allclose(result, expected, rtol=1e-9)
    assert found
    return found


def test_root_of_a_square_is_not_the_square_of_a_root() -> None:
    b = Builder("length", m=4, k=4)
    b.input("x", "m", "k")
    b.sum("s", "x", "k")
    b.mul("ss", "s", "s")
    b.sqrt("y", "ss")
    b.elementwise(Kind.ADD, "z", "y", "s")
    assert "s" not in roots_of(b.program("z", "m"))


def test_what_the_program_takes_a_root_of_is_not_negative() -> None:
    """sqrt(x) sqrt(y) may become sqrt(x y): where one of them is negative, the program has no number either."""
    b = Builder("geometric", m=4, k=4)
    b.input("x", "m", "k")
    b.input("y", "m", "k")
    b.sqrt("u", "x")
    b.sqrt("v", "y")
    b.mul("w", "u", "v")
    b.sum("z", "w", "k")
    program = b.program("z", "m")
    found = {len(block.block_ops) for block in (found.block for found in topologies(program, Limits(seconds=2.0)))}
    assert min(found) == 3  # a product, a root, a sum


def test_sum_of_squares_keeps_its_root() -> None:
    b = Builder("norm", m=4, k=4)
    b.input("x", "m", "k")
    b.mul("xx", "x", "x")
    b.sum("s", "xx", "k")
    b.sqrt("y", "s")
    b.elementwise(Kind.DIV, "z", "x", "y")
    roots_of(b.program("z", "m", "k"))

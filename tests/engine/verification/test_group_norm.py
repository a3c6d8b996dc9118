"""Norms of what a matrix product makes: as many roots as a row has groups, for which no inputs are easily found."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verification.field import FieldArithmetic
from mugraph.verification.inputs import draw_inputs
from mugraph.verification.verifier import verify_schedule, verify_topology

from tests.engine.verification.graphs import Builder, tensor

SIZES = {"m": 64, "k": 128, "g": 16, "c": 32}
X, W, GAIN, OUT = (
    tensor("x", "m k", SIZES),
    tensor("w", "k g c", SIZES),
    tensor("gain", "g c", SIZES),
    tensor("out", "m g c", SIZES),
)


def normed(*, by_moments: bool, mean: float = 1 / 32, root: bool = True) -> Builder:
    """(y - mean y) / sqrt(var y + eps) * gain of y = x w, each group of channels on its own."""
    b = Builder()
    b.load("x", X), b.load("w", W), b.load("gain", GAIN)
    b.const("n", mean), b.const("minus", -1.0), b.const("eps", 1e-5)
    b.reduce("y", Kind.DOT, "x", "w", over="k")
    b.reduce("total", Kind.SUM, "y", over="c"), b.ew("mean", Kind.MUL, "total", "n")
    b.ew("less", Kind.MUL, "mean", "minus"), b.ew("centred", Kind.ADD, "y", "less")
    if by_moments:
        b.ew("yy", Kind.MUL, "y", "y"), b.reduce("squares", Kind.SUM, "yy", over="c")
        b.ew("moment", Kind.MUL, "squares", "n"), b.ew("mm", Kind.MUL, "mean", "mean")
        b.ew("less_mm", Kind.MUL, "mm", "minus"), b.ew("variance", Kind.ADD, "moment", "less_mm")
    else:
        b.ew("cc", Kind.MUL, "centred", "centred"), b.reduce("squares", Kind.SUM, "cc", over="c")
        b.ew("variance", Kind.MUL, "squares", "n")
    b.ew("shifted", Kind.ADD, "variance", "eps")
    b.ew("deviation", Kind.SQRT, "shifted")
    b.ew("scaled", Kind.MUL, "centred", "gain")
    b.ew("out", Kind.DIV, "scaled", "deviation" if root else "shifted")
    return b


def program(b: Builder) -> TensorProgram:
    return TensorProgram("group_norm", SIZES, (X, W, GAIN), tuple(b.ops), {"out": OUT})


def graph(b: Builder) -> BlockGraph:
    b.store("out", OUT)
    return BlockGraph("group_norm", SIZES, (X, W, GAIN, OUT), tuple(b.ops), ())


@pytest.mark.parametrize("by_moments", [False, True])
def test_right_graphs_pass(by_moments: bool) -> None:
    reference = program(normed(by_moments=False))
    found = verify_topology(reference, graph(normed(by_moments=by_moments)))
    assert found.passed, found.reason
    found = verify_schedule(reference, graph(normed(by_moments=by_moments)), Schedule((("m", 16), ("g", 4))))
    assert found.passed, found.reason


def test_wrong_graphs_do_not() -> None:
    reference = program(normed(by_moments=False))
    for wrong in (normed(by_moments=True, mean=1 / 16), normed(by_moments=False, root=False)):
        block = graph(wrong)
        assert not verify_topology(reference, block).passed
        assert not verify_schedule(reference, block, Schedule((("m", 16), ("g", 4)))).passed


def test_a_draw_without_roots_is_given_up_and_any_inputs_taken() -> None:
    reference = program(normed(by_moments=False))
    rng = np.random.default_rng(0)
    field = FieldArithmetic(rng, 1, with_q=False)
    draw_inputs(reference, field, rng)
    assert not field.valid.any()  # 16 groups: one draw of 65,536 has 16 squares
    field = FieldArithmetic(rng, 1, with_q=False)
    draw_inputs(reference, field, rng, of_squares=False)
    assert field.valid.all()


def matrix(*, moved: bool, factor: float = 4.0) -> Builder:
    """sqrt(4 y) or 2 sqrt(y) of y = x w: a root of every element of a matrix."""
    b = Builder()
    b.load("x", X), b.load("w", W), b.const("four", factor), b.const("two", 2.0)
    b.reduce("y", Kind.DOT, "x", "w", over="k")
    if moved:
        b.ew("root", Kind.SQRT, "y"), b.ew("out", Kind.MUL, "root", "two")
    else:
        b.ew("scaled", Kind.MUL, "y", "four"), b.ew("out", Kind.SQRT, "scaled")
    return b


def test_what_the_program_takes_a_root_of_is_positive_where_no_draw_says_so() -> None:
    found = verify_topology(program(matrix(moved=False)), graph(matrix(moved=True)))
    assert found.passed, found.reason
    found = verify_topology(program(matrix(moved=True)), graph(matrix(moved=False)))
    assert found.passed, found.reason
    for factor in (-4.0, 2.0):
        assert not verify_topology(program(matrix(moved=True)), graph(matrix(moved=False, factor=factor))).passed

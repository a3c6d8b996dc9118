"""Constants that belong to sizes, in loops and in kernels that run one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.splits import cuts
from mugraph.verification.verifier import verify_topologies, verify_topology

from tests.engine.verification.graphs import Builder, tensor
from tests.engine.verification.mutants import mutants

SIZES = {"row": 48, "column": 64}
X, OUT = tensor("x", "row column", SIZES), tensor("out", "row", SIZES)


def variance() -> TensorProgram:
    """The mean of (x - mean x)^2."""
    b = Builder()
    b.load("x", X), b.const("n", 1 / 64), b.const("minus", -1 / 64)
    b.reduce("total", Kind.SUM, "x", over="column"), b.ew("less", Kind.MUL, "total", "minus")
    b.ew("centred", Kind.ADD, "x", "less"), b.ew("squared", Kind.MUL, "centred", "centred")
    b.reduce("squares", Kind.SUM, "squared", over="column"), b.ew("out", Kind.MUL, "squares", "n")
    return TensorProgram("variance", SIZES, (X,), tuple(b.ops), {"out": OUT})


def by_moments(*, late: bool = False) -> BlockGraph:
    """The mean of x^2 less the square of the mean, both sums in one loop. late: kept as tiles, summed after it"""
    b = Builder()
    b.load("x", X), b.const("n", 1 / 64), b.const("minus", -1 / 64)
    b.ew("xx", Kind.MUL, "x", "x")
    for name, value in (("total", "x"), ("squares", "xx")):
        if late:
            b.accum(f"{name}_tile", value, "column"), b.reduce(name, Kind.SUM, f"{name}_tile", over="column")
        else:
            b.reduce(f"{name}_part", Kind.SUM, value, over="column"), b.accum(name, f"{name}_part", "column")
    b.ew("moment", Kind.MUL, "squares", "n"), b.ew("mean", Kind.MUL, "total", "n")
    b.ew("less", Kind.MUL, "total", "minus"), b.ew("squared", Kind.MUL, "mean", "less")
    b.ew("out", Kind.ADD, "moment", "squared")
    b.store("out", OUT)
    return BlockGraph("by_moments", SIZES, (X, OUT), tuple(b.ops), (Loop("column"),))


@pytest.mark.parametrize("late", [False, True])
def test_sums_in_a_loop_weigh_as_much(late: bool) -> None:
    found = verify_topology(variance(), by_moments(late=late))
    assert found.passed, found.reason
    assert found.bound is not None


@pytest.mark.parametrize("late", [False, True])
def test_mutants_are_killed(late: bool) -> None:
    passed = {what for what, mutant in mutants(by_moments(late=late)) if verify_topology(variance(), mutant).passed}
    assert passed == set()


@pytest.mark.parametrize("size", [1 / 63, 1 / 65, 1 / 48, 1 / 3, 1 / 4, 1 / 8, 1 / 10])
def test_the_number_of_another_size_is_wrong(size: float) -> None:
    block = by_moments()
    ops = tuple(replace(op, value=size if op.value > 0 else -size) if op.kind is Kind.CONST else op for op in block.ops)
    assert not verify_topology(variance(), replace(block, ops=ops)).passed


def test_parts_of_a_split_weigh_as_much_as_the_whole() -> None:
    (cut,) = cuts(by_moments())
    first, second = cut.at(4)
    found = verify_topologies(variance(), [(first, None), (second, None)])
    assert found.passed, found.reason

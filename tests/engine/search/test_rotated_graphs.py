"""Rotated keys of an attention: two values that one kernel computes and another reads, where it reads them often."""

from __future__ import annotations

import pytest
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block
from mugraph.search import Limits, Search
from mugraph.search.kernel_graphs.chain import chained
from mugraph.search.kernel_graphs.expected import Remainders, with_loads
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram, worth_storing
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.workloads import Builder, gated_mlp

H200 = TARGETS["h200"]
FIRST = Limits(seconds=5.0, max_topologies=1)


def rotated_attention(rows: int, keys: int, heads: int = 32) -> TensorProgram:
    """Queries and keys in halves of 32, the keys turned by tables of cosines and sines."""
    b = Builder("rotated", b=heads, q=rows, n=keys, r=32, e=64)
    one, two = b.input("k1", "b", "n", "r"), b.input("k2", "b", "n", "r")
    cos, sin = b.input("cos", "n", "r"), b.input("sin", "n", "r")
    minus = b.mul("minus", b.const("minus_one", -1.0), b.mul("two_sin", two, sin))
    first = b.add("first", b.mul("one_cos", one, cos), minus)
    second = b.add("second", b.mul("two_cos", two, cos), b.mul("one_sin", one, sin))
    left, right = (
        b.dot(f"s{half}", b.input(f"q{half}", "b", "q", "r"), k, "r") for half, k in ((1, first), (2, second))
    )
    scores = b.add("scores", left, right)
    weights = b.exp("p", b.mul("scaled", scores, b.const("scale", 0.125)))
    probabilities = b.div("probs", weights, b.sum("l", weights, "n"))
    return b.program(b.dot("o", probabilities, b.input("V", "b", "n", "e"), "n"), "b", "q", "e")


def test_halves_are_handed_over_and_what_they_are_made_of_is_not() -> None:
    program = rotated_attention(512, 512)
    names = worth_storing(program, in_memory(program))
    assert {"first", "second"} <= names
    assert not names & {"two_sin", "minus", "one_cos", "two_cos", "one_sin"}


def test_keys_are_turned_once_where_many_blocks_read_them() -> None:
    """Told of with its last part, also where others that are expected to take less will not be looked at."""
    program = rotated_attention(512, 512)
    alone = Solver(H200, FIRST, lambda: False).solve(program).candidates
    search = KernelGraphs(program, H200, GraphLimits(max_parts=2, each=FIRST), candidates=alone)
    (found,) = search.run()
    assert search.stats.ended_by == "parts"
    turned, attention = found.candidates[0].kernels
    assert {tensor.name for tensor in turned.block.outputs} == {"first", "second"}
    assert {"first", "second"} <= {tensor.name for tensor in attention.block.inputs}
    assert found.candidates[0].estimate_us < alone[0].estimate_us
    remainders = Remainders(alone, ["first", "second"], H200)
    left = remainders.us(frozenset({"first", "second"}), in_memory(program))
    assert left == pytest.approx(attention.estimate_us, rel=0.3)
    assert remainders.us(frozenset({"scores"}), in_memory(program)) is None
    assert verify_topologies(program, [(turned.block, None), (attention.block, None)], seed=5).passed


def test_what_is_left_of_a_kernel() -> None:
    block = next(found.block for found in Search(gated_mlp(8, 256, 512), FIRST).run() if found.block.loops)
    stored = in_memory(gated_mlp(8, 256, 512))
    left = with_loads(block, {"gate"}, stored)
    assert left is not None
    assert {tensor.name for tensor in left.inputs} == {tensor.name for tensor in block.inputs} - {"w1"} | {"gate"}
    assert check_block(left) == []
    assert sum(op.kind is Kind.DOT for op in left.ops) == 1
    assert with_loads(block, {"gate", "value"}, stored) is None  # nothing is left in the loop
    assert with_loads(block, {"gate", "x_squared"}, stored | {"x_squared": stored["gate"]}) is None


def test_one_kernel_turns_them_on_the_way_where_few_rows_read_them() -> None:
    program = rotated_attention(16, 1024)
    solver, stored = Solver(H200, FIRST, lambda: False), in_memory(program)
    halves = ["first", "second"]
    parts: list[tuple[list[str], list[str]]] = [(["o"], []), (halves, []), (["o"], halves)]
    alone, turned, rest = (solver.solve(subprogram(program, *part, stored)).candidates[0] for part in parts)
    assert alone.estimate_us < chained([turned, rest]).estimate_us

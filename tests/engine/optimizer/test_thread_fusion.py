"""Thread graphs: those of the papers' block graphs, and what must hold of any."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest
from hypothesis import given, settings
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.placement import left_behind, varying
from mugraph.ir.registers import THREAD_LEVEL, leaving
from mugraph.ir.spec import check_mugraph
from mugraph.optimizer.thread_fusion import fuse_threads

from tests.engine.ir.graphs import single
from tests.engine.ir.random_graphs import block_graphs
from tests.engine.verification.graphs import CASES, attention, lora, n_trans, rms_norm_linear


def test_figure_3b_fuses_what_follows_the_loop() -> None:
    """Mirage §4.2 fuses Mul, Sqrt and Div; the addition of eps stands between them. The sum of squares is one too."""
    sums, behind = fuse_threads(rms_norm_linear().block)
    assert (sums.name, sums.inputs, [op.name for op in sums.ops]) == ("ss_part", ("x",), ["sq", "ss_part"])
    assert (behind.name, behind.inputs) == ("out", ("ss", "acc"))
    assert [op.name for op in behind.ops] == ["inv_h", "eps", "mean", "shifted", "rms", "out"]


def test_a_product_is_followed_by_what_is_element_wise_and_preceded_by_nothing() -> None:
    (scores,) = fuse_threads(attention().block)
    assert (scores.name, scores.inputs) == ("e_", ("q", "k"))
    assert [op.kind for op in scores.ops] == [Kind.CONST, Kind.DOT, Kind.MUL, Kind.EXP]


def test_two_products_that_one_accumulator_adds_up() -> None:
    (both,) = fuse_threads(lora().block)
    assert [op.kind for op in both.ops] == [Kind.DOT, Kind.DOT, Kind.ADD]


def test_whole_rows_are_one_thread_graph() -> None:
    block = n_trans().block
    (rows,) = fuse_threads(block)
    assert {op.name for op in rows.ops} == {op.name for op in block.ops if op.kind not in (Kind.LOAD, Kind.STORE)}


@pytest.mark.parametrize("name", CASES)
def test_papers_graphs(name: str) -> None:
    check_threads(CASES[name]().block)


@settings(max_examples=100, deadline=None)
@given(block_graphs())
def test_random_graphs(drawn: tuple[BlockGraph, Schedule]) -> None:
    block, schedule = drawn
    check_threads(block)
    assert [found for found in check_mugraph(single(block, schedule)) if "thread graph" in found] == []


def check_threads(block: BlockGraph) -> None:
    """Values inside have all their uses inside, of one phase; groups are computed one at a time; none can grow."""
    threads = fuse_threads(block)
    group = {op.name: thread.name for thread in threads for op in thread.ops if op.kind is not Kind.CONST}
    assert len(group) == sum(op.kind is not Kind.CONST for thread in threads for op in thread.ops)
    users = {op.name: [user for user in block.ops if op.name in user.inputs] for op in block.ops}
    vary, left = varying(block), left_behind(block)
    leaves = leaving(block)
    for thread in threads:
        members = [op for op in thread.ops if op.kind is not Kind.CONST]
        assert len(members) > 1
        assert len({(vary[op.name], left[op.name]) for op in members}) == 1
        for op in members:
            if op.name != thread.name:
                assert users[op.name]
                assert {group.get(user.name) for user in users[op.name]} == {thread.name}
                assert not any(user.kind is Kind.DOT for user in users[op.name])
    before = {group.get(op.name, op.name): set[str]() for op in block.ops if op.kind is not Kind.CONST}
    for op in block.ops:
        for name in op.inputs:
            source, target = group.get(name, name), group.get(op.name, op.name)
            if target in before and source in before and source != target:
                before[target].add(source)
    assert len(list(TopologicalSorter(before).static_order())) == len(before)
    for op in block.ops:
        if op.kind in THREAD_LEVEL and group.get(op.name, op.name) == op.name and users[op.name]:
            ends = {group.get(user.name, user.name) for user in users[op.name]}
            assert len(ends) > 1 or any(leaves(op, user) for user in users[op.name]), op.name

"""Thread fusion and operator order change how a block graph runs and nothing of what it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.ops import ELEMENTWISE
from mugraph.optimizer.order import by_depth, depths, synchronisations
from mugraph.optimizer.thread_fusion import fuse_threads
from mugraph.verify.verifier import verify_topology

from tests.engine.verify.graphs import CASES, attention, rms_norm_linear


def test_figure_3b_fuses_what_follows_the_loop() -> None:
    """Mirage §4.4 fuses Mul, Sqrt and Div; the addition of eps stands between them."""
    (thread,) = fuse_threads(rms_norm_linear().block)
    assert thread.name == "out"
    assert thread.inputs == ("ss", "acc")
    assert [op.name for op in thread.ops] == ["inv_h", "eps", "mean", "shifted", "rms", "out"]


def test_fusion_stops_at_the_loop_and_at_reductions() -> None:
    threads = fuse_threads(attention().block)
    assert [(thread.name, thread.inputs) for thread in threads] == [("e_", ("s",))]


def test_a_value_with_two_users_in_different_graphs_stays_in_the_block_graph() -> None:
    for make in CASES.values():
        block = make().block
        threads = fuse_threads(block)
        names = [op.name for thread in threads for op in thread.ops if op.kind in ELEMENTWISE]
        assert len(names) == len(set(names))
        for thread in threads:
            inside = {op.name for op in thread.ops if op.kind in ELEMENTWISE}
            for op in block.ops:
                if op.name not in inside:
                    assert not (inside - {thread.name}).intersection(op.inputs)


@pytest.mark.parametrize("name", CASES)
def test_by_depth_needs_fewest_barriers_and_keeps_the_function(name: str) -> None:
    case = CASES[name]()
    ordered = by_depth(case.block)
    depth = depths(ordered)
    assert [depth[op.name] for op in ordered.ops] == sorted(depth.values())
    assert synchronisations(ordered) <= synchronisations(case.block)
    verdict = verify_topology(case.program, ordered)
    assert verdict.passed, verdict.reason


def test_depth_order_saves_barriers_where_two_chains_were_written_one_after_the_other() -> None:
    case = rms_norm_linear()
    assert synchronisations(by_depth(case.block)) < synchronisations(case.block)
    again = by_depth(replace(case.block, ops=tuple(by_depth(case.block).ops)))
    assert again.ops == by_depth(case.block).ops

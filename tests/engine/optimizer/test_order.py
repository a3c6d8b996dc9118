"""Operator order changes how a block graph runs and nothing of what it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.optimizer.order import by_depth, depths, synchronisations
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.graphs import CASES, rms_norm_linear


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

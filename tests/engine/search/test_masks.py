"""The search treats a mask as a factor: every topology has it where the maximum can know of it, and is right."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.search.run import Search
from mugraph.search.schedules.ends import ends
from mugraph.search.schedules.sizes import best
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.work import work
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.masked_programs import changed, looped, program


def test_every_topology_of_causal_attention_is_right_and_lowers() -> None:
    search = Search(program(0))
    blocks = [found.block for found in search.run()]
    assert search.stats.complete
    assert any(block.loop_axes == ("t",) for block in blocks)
    for block in blocks:
        assert verify_topology(program(0), block, seed=1).passed
        (mask,) = [op for op in block.ops if op.kind is Kind.MASK]
        users = [op for op in block.ops if mask.name in op.inputs]
        kinds = {op.name: op.kind for op in block.ops}
        assert all({kinds[name] for name in user.inputs} == {Kind.EXP, Kind.MASK} for user in users)
        grid = tuple((axis, 64 if axis == "s" else 32) for axis in Shape(block).grid_axes)
        lower(block, Schedule(grid, dict.fromkeys(block.loop_axes, 16)))


def test_a_masked_product_without_softmax() -> None:
    """Causal linear attention: the mask stays between the products."""
    ops = [op for op in program(0).ops if op.kind not in (Kind.EXP, Kind.SUM, Kind.DIV)]
    new = {"kept": ("scores", "mask"), "y": ("kept", "v")}
    linear = replace(program(0), ops=tuple(replace(op, inputs=new.get(op.name, op.inputs)) for op in ops))
    blocks = [found.block for found in Search(linear).run()]
    assert blocks
    for block in blocks:
        assert verify_topology(linear, block, seed=2).passed


def test_the_estimate_knows_which_tiles_are_skipped() -> None:
    causal, full = Shape(looped(0)), Shape(looped(512))
    assert list(ends(looped(0))) == ["t"]
    schedule = Schedule((("s", 32),), {"t": 32})
    # 256 queries in 8 blocks see 1 to 8 of 16 tiles of keys: 36 of 128
    assert work(causal, schedule, 8).steps == 16 * 36 / 128
    assert work(full, schedule, 8).steps == 16
    assert causal.longest(schedule) == (8 / 16) / (36 / 128)


def test_a_loop_that_does_more_than_masked_sums_runs_to_its_end() -> None:
    block = changed(looped(0), "part", inputs=("p",))
    assert ends(block) == {}
    # Nor is it a kernel: the maximum would be of logits that only one of the sums counts.
    with pytest.raises(Rejected, match="masked"):
        lower(block, Schedule((("s", 32),), {"t": 32}))


def test_a_causal_loop_is_estimated_shorter() -> None:
    target = TARGETS["h100"]
    (half,), (whole,) = (best([looped(diagonal)], target)[:1] for diagonal in (0, 512))
    assert half.estimate_us < whole.estimate_us
    assert kernel_candidates([looped(0)], target)[0].estimate_us <= half.estimate_us

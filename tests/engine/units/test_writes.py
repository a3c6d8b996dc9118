"""Units beside calls that write to what others see."""

from __future__ import annotations

from pathlib import Path

from mugraph.ir.calls import STORES
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region

PROGRAM = Path(__file__).parents[2] / "heldout" / "programs" / "caches.py"


def regions() -> tuple[Region, ...]:
    trace = trace_file(PROGRAM)
    assert trace.errors == ()
    return trace.regions


def test_no_unit_moves_across_a_write() -> None:
    for region in regions():
        order = {call.outputs: i for i, call in enumerate(region.calls)}
        writes = [i for i, call in enumerate(region.calls) if call.target in (STORES, "Tensor.index_copy_")]
        assert writes
        written = -1
        for part in cut_region(region)[1]:
            positions = [order[call.outputs] for call in part.calls if call.outputs in order]
            if isinstance(part, SearchUnit):
                assert not any(min(positions) < write < max(positions) for write in writes)
                assert min(positions) > written
            else:
                written = max([written, *(i for i in positions if i in writes)])


def test_writes_are_plain_calls_and_caches_are_operands() -> None:
    for region in regions():
        parts = cut_region(region)[1]
        plain = [call.target for part in parts if isinstance(part, PlainCalls) for call in part.calls]
        wanted = [call.target for call in region.calls if call.target in (STORES, "Tensor.index_copy_")]
        assert [target for target in plain if target in wanted] == wanted
        assert "Tensor.repeat_interleave" not in plain
        assert any(
            "exp" in op.kind.primitives for part in parts if isinstance(part, SearchUnit) for op in part.program.ops
        )

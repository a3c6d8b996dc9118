"""What converts weights of eight bits is part of the kernel that multiplies with them: they are read once, as bytes."""

from __future__ import annotations

from pathlib import Path

from mugraph.ir.dtypes import STORED
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.ops.algebra.registry import entry_for
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region

PROGRAMS = Path(__file__).parent / "programs" / "stored_in_few_bits.py"


def test_nothing_is_converted_outside_of_a_kernel() -> None:
    trace = trace_file(PROGRAMS)
    assert trace.errors == ()
    assert len(trace.regions) == PROGRAMS.read_text().count("# mugraph:")
    for region in trace.regions:
        parts = cut_region(region)[1]
        (unit,) = (part for part in parts if isinstance(part, SearchUnit))
        assert any(tensor.dtype in STORED for tensor in unit.program.tensors), region.function
        plain = [call for part in parts if isinstance(part, PlainCalls) for call in part.calls]
        assert not [call.target for call in plain if (entry := entry_for(call.target)) and not entry.shape_only]
        assert not [call.target for call in plain if "to" in call.target.split(".") or "half" in call.target]

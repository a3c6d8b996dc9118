"""Samples of decoding are one region each, whose code is in several functions and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.region import SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region

from tests.samples.declared import SAMPLES

FILES = sorted(path for path in (SAMPLES / "decoding").glob("*.py") if path.stem != "layers")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_function_is_a_region(path: Path) -> None:
    trace = trace_file(path)
    assert (trace.errors, trace.notices) == ((), ())
    assert [region.status for region in trace.regions] == [None] * (3 if "linear" in path.stem else 1)
    for region in trace.regions:
        parts = cut_region(region)[1]
        units = [part for part in parts if isinstance(part, SearchUnit)]
        assert len(units) == 1 if "linear" in path.stem else len(units) > 3

"""Samples of decoding are a region each, whose code is in several functions and files; a model's head is another."""

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
    count = next((count for word, count in (("linear", 3), ("model", 2)) if word in path.stem), 1)
    assert [region.status for region in trace.regions] == [None] * count
    for at, region in enumerate(trace.regions):
        units = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
        is_short = "linear" in path.stem or at == 1
        assert len(units) == 1 if is_short else len(units) > 3

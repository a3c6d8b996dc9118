"""Programs bound by memory: chains of element-wise operators, rows of any length, losses, and what cuts them.

Every function has a region, and all of it but what is outside of the algebra is in search units. Nothing is searched
here: the shapes are large. tests/heldout/programs has smaller ones that go the whole way.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.tracer import trace_file
from mugraph.units.outside import outside
from mugraph.units.region_units import cut_region

FILES = sorted((Path(__file__).parent / "memory_bound").glob("*.py"))
OUTSIDE = {
    "sorted_between": "torch.sort",
    "gathered": "torch.gather",
    "best_of": "torch.topk",
    "chosen_rows": "Tensor.__getitem__",
    "running": "torch.cumprod",
    "only_sorted": "torch.sort",
}
"""Functions that are cut, and where."""
ONE_KERNEL = {"OneHardTanh.forward", "one_sum", "only_sorted"}
"""Functions of which PyTorch makes nothing that a kernel would be better at."""


def _plain(region: Region) -> list[str]:
    """Calls outside of search units, but for views."""
    calls = [call for part in cut_region(region)[1] if isinstance(part, PlainCalls) for call in part.calls]
    entries = {call.target: entry_for(call.target) for call in calls}
    named = {name for name, _ in outside(region)}
    computed = (c for c in calls if canonical(c.target) in named or not ((e := entries[c.target]) and e.shape_only))
    return [canonical(call.target) for call in computed]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_of_them_are_regions(path: Path) -> None:
    trace = trace_file(path)
    assert trace.errors == ()
    assert not trace.barriers or path.stem == "cuts", trace.barriers
    regions = {region.function: region for region in trace.regions}
    defined = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
    assert {function.split(".")[0] for function in regions} == defined
    for function, region in regions.items():
        units = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
        if function in ONE_KERNEL:
            assert units == []
            continue
        assert units, function
        assert _plain(region) == ([OUTSIDE[function]] if function in OUTSIDE else []), function


def test_what_cuts_a_chain_is_named_with_its_line() -> None:
    path = Path(__file__).parent / "memory_bound" / "cuts.py"
    (region,) = trace_file(path, qualname="sorted_between").regions
    ((name, (line,)),) = outside(region)
    assert name == "torch.sort"
    assert "torch.sort" in path.read_text().splitlines()[line - 1]

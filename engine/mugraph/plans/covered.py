"""Regions inside code that another region replaces: where the outer one's kernels run, theirs do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.ir.ran import Code
from mugraph.ir.region import Region


def covered(regions: Sequence[Region]) -> dict[int, Region]:
    """For each region whose code ran inside another of these regions: its position -> the outermost such region."""
    inside = {
        number: [outer for outer in regions if outer is not region and _holds(outer, region)]
        for number, region in enumerate(regions)
    }
    outermost = [region for number, region in enumerate(regions) if not inside[number]]
    return {
        number: next(outer for outer in outers if outer in outermost)
        for number, outers in inside.items()
        if any(outer in outermost for outer in outers)
    }


def why_left_out(region: Region, outer: Region) -> str:
    """One sentence's worth, for a person."""
    return f"left out: {region.function} runs inside {outer.function}, whose kernels take its place"


def _holds(outer: Region, region: Region) -> bool:
    if outer.function == region.function:
        return False
    return any(code.qualname == region.function and region.text in code.text for code in _codes(outer))


def _codes(region: Region) -> Iterator[Code]:
    for ran in region.ran.values():
        if ran.function is not None:
            yield ran.function
        for chain in ran.methods.values():
            yield from chain

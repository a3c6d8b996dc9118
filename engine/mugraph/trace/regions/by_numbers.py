"""Regions of a program that could only be traced with numbers, because it reads some: sizes in it that come of these.

It is run again with other numbers. A region whose sizes are others then is right for the numbers of one run alone, and
would fit no other call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.region import Region
from mugraph.trace.regions.size_words import said


def without_sizes_of_data(regions: Sequence[Region], again: Sequence[Region]) -> list[Region]:
    """again: of the run with other numbers. Of code that was executed with several such sizes one region is left, which
    says why it is none."""
    found: list[Region] = []
    told: set[tuple[object, ...]] = set()
    for region in regions:
        why = None if region.status is not None else _varies(region, regions, again)
        if why is None:
            found.append(region)
        elif _place(region) not in told:
            told.add(_place(region))
            found.append(replace(region, status="unsupported", reason=why))
    return found


def _varies(region: Region, regions: Sequence[Region], again: Sequence[Region]) -> str | None:
    ways = [one for one in regions if _place(one) == _place(region)]
    others = [one for one in again if _place(one) == _place(region) and _targets(one) == _targets(region)]
    for one in (one for one in ways if _targets(one) == _targets(region)):
        if others and not any(_shapes(other) == _shapes(one) for other in others):
            return _words(one, others[0])
    return None


def _words(region: Region, other: Region) -> str:
    makers = {value: said(call) for call in region.calls for value in call.outputs}
    makers |= {live_in.value: live_in.expression for live_in in region.live_ins}
    for value, shape in _shapes(region).items():
        there = _shapes(other).get(value)
        if there is not None and there != shape and value in makers:
            here = f"{makers[value]} is {list(shape)}"
            return f"a size of it comes of data: {here} with some numbers, {list(there)} with others"
    return "sizes of it come of data: with other numbers they are others"


def _place(region: Region) -> tuple[object, ...]:
    return region.function, region.range, region.unit


def _targets(region: Region) -> list[str]:
    return [call.target for call in region.calls]


def _shapes(region: Region) -> dict[int, tuple[int, ...]]:
    return {value: info.shape for value, info in region.values.items()}

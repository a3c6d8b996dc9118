"""Regions that are not written: those inside code that another region replaces, where the outer one's kernels run and
theirs do not; and those whose lines another region has in part, as of a function that is called in several ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.ir.calls import TensorInfo
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


def left_out(regions: Sequence[Region]) -> dict[int, str]:
    """Position of each region that is not written -> why, in words for a person. What comes first goes before."""
    inner = covered(regions)
    found = {
        number: f"left out: {regions[number].function} runs inside {outer.function}, whose kernels take its place"
        for number, outer in inner.items()
    }
    written: list[Region] = []
    for number, region in enumerate(regions):
        if number not in found and any(_clash(region, one) for one in written):
            found[number] = f"left out: another region has some of its lines, for other calls of {region.function}"
        elif number not in found:
            written.append(region)
    return found


def _clash(one: Region, other: Region) -> bool:
    """Of the same code there may be several, each for other calls."""
    if (one.range, one.unit) == (other.range, other.unit):
        return False
    return one.range.start < other.range.end and other.range.start < one.range.end


def _holds(outer: Region, region: Region) -> bool:
    """A region for one size leaves the others to a region inside of it that is for a range of them."""
    if outer.function == region.function or (outer.dynamic is None and region.dynamic is not None):
        return False
    if not _has_its_sizes(outer, region):
        return False
    text = _statements(region.text)
    return any(code.qualname == region.function and text in _statements(code.text) for code in _codes(outer))


def _has_its_sizes(outer: Region, region: Region) -> bool:
    """A region that ran inside of the outer one read values of it. One for other calls of the same code has other
    sizes: the outer one's kernels take none of these calls."""
    return all(
        any(_may_be(outer, value, region.values[one.value]) for value in outer.values)
        for one in region.live_ins
        if one.value in region.values
    )


def _may_be(outer: Region, value: int, info: TensorInfo) -> bool:
    """Whether a value has this shape, at some sizes if it varies."""
    largest = outer.values[value]
    if (largest.dtype, len(largest.shape)) != (info.dtype, len(info.shape)):
        return False
    of_sizes = () if outer.dynamic is None else outer.dynamic.shapes.get(value, ())
    if outer.dynamic is None or not of_sizes:
        return info.shape == largest.shape
    ends = [
        of.ends(outer.dynamic.ranges) if of else (whole, whole)
        for of, whole in zip(of_sizes, largest.shape, strict=True)
    ]
    return all(least <= size <= most for size, (least, most) in zip(info.shape, ends, strict=True))


def _statements(text: str) -> str:
    """Without indentation, blank lines and lines of comments: code that ran is kept without these."""
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def _codes(region: Region) -> Iterator[Code]:
    for ran in region.ran.values():
        if ran.function is not None:
            yield ran.function
        for chain in ran.methods.values():
            yield from chain

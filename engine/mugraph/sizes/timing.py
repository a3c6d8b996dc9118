"""At which sizes of a range a region is timed, and for which of them it is then faster than the user's own code.

Times are taken at a few sizes, further ones where neighbours disagree. A size in between two that were timed is taken
to be as they are where both gain, and else left to the user's code: nothing is claimed that was not seen on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from math import sqrt

from mugraph.events import Figures, SizeTiming, Timing
from mugraph.ir.ranges import SizeRange
from mugraph.ir.region import Region
from mugraph.protocol.gain_words import gain_words as words

MOST = 6
"""Sizes that are timed: each takes PyTorch's compilers their time again."""

Spans = tuple[tuple[int, int], ...]


def first_sizes(size: SizeRange) -> tuple[int, ...]:
    """Timed in any case: the largest, the least, one in the middle."""
    middle = between(size.least, size.largest)
    return (size.largest, size.least, *([middle] if middle is not None else []))


def between(low: int, high: int) -> int | None:
    """In the middle by ratio, as a power of two where there is one: kernels have such tiles. None without a size."""
    middle = sqrt(low * high)
    powers = [1 << n for n in range(high.bit_length()) if low < 1 << n < high]
    if powers:
        return min(powers, key=lambda power: max(power / middle, middle / power))
    return round(middle) if low < round(middle) < high else low + 1 if high - low > 1 else None


def next_size(size: SizeRange, gains: Mapping[int, bool]) -> int | None:
    """Which size to time next; None where all that are needed have been. gains: of those that were"""
    for first in first_sizes(size):
        if first not in gains:
            return first
    if len(gains) >= MOST:
        return None
    known = sorted(gains)
    for low, high in pairwise(known):
        middle = between(low, high)
        if gains[low] != gains[high] and middle is not None and middle.bit_count() == 1:
            return middle
    return None


def spans_of(rows: Sequence[SizeTiming]) -> Spans:
    """From one size that gains to the last of its neighbours that does, both included. rows: the smallest size first"""
    spans: list[tuple[int, int]] = []
    gaining = False
    for row in rows:
        if row.gains:
            spans[-1:] = [(spans[-1][0], row.size)] if gaining else [*spans[-1:], (row.size, row.size)]
        gaining = row.gains
    return tuple(spans)


def of_sizes(size: SizeRange, timings: Mapping[int, Timing]) -> Timing:
    """One timing of several sizes: its own figures are those of the largest size that gains, if one does."""
    every = sorted(timings)
    rows = tuple(
        SizeTiming(**{one.name: getattr(timings[at], one.name) for one in fields(Figures)}, size=at) for at in every
    )
    chosen = next((row.size for row in reversed(rows) if row.gains), every[-1])
    return replace(timings[chosen], sizes=rows, at=chosen)


def gain_words(region: Region, timing: Timing, sign: str = "x") -> str:
    """ "2.30x as it runs, 1.20x torch.compile", and of several sizes "1.40x to 2.30x as it runs for b up to 16"; of an
    estimate "about 2.3x by estimate"; "" where nothing is gained."""
    ranged = region.dynamic is not None and timing.sizes
    rows = [row for row in timing.sizes if row.gains] if ranged else [timing] if timing.gains else []
    gain = words(rows, measured=timing.source == "measured", compare_with=timing.compare_with, sign=sign)
    return f"{gain} for {faster_for(region, timing)}" if ranged and gain else gain


def faster_for(region: Region, timing: Timing) -> str:
    """In words, the sizes at which a region with a range is faster, "b up to 16"; "" without any."""
    return region.dynamic.range.words(spans_of(timing.sizes)) if region.dynamic is not None else ""


def ratios(region: Region, timing: Timing) -> str:
    """At each of several sizes, "b = 1: 2.30x, b = 64: 0.98x"; "" without any."""
    if region.dynamic is None:
        return ""
    name = region.dynamic.range.name
    return ", ".join(f"{name} = {row.size}: {row.speedup:.2f}x" for row in timing.sizes if row.speedup is not None)

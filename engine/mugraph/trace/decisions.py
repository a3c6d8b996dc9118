"""Whether functions do the same at all sizes of their ranges, as run/unknown_size.py finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.ranges import Point, SizeRange, Take, takes
from mugraph.trace.regions.dynamic import Called, Decided
from mugraph.trace.run.data_sizes import SizesOfData
from mugraph.trace.run.entries import Definitions, Entry
from mugraph.trace.run.places import Places
from mugraph.trace.syntax.shapes import spec_text


def decisions(
    at: Callable[[Take], Definitions],
    places: Places,
    chosen: Mapping[str, Entry],
    of_data: Mapping[str, SizesOfData],
) -> tuple[dict[str, Decided | None], dict[str, Called]]:
    """Of functions with ranges: what they decide by the sizes, None where they do the same at all of them; and what
    each was run with. at: the definitions at a size of each range. of_data: sizes that come of data, by function"""
    from mugraph.trace.run.unknown_size import varying_numbers  # sympy is slow to import

    every = takes([size for entry in chosen.values() for size in entry.sizes])
    others = [(take, {one.function: one for one in at(take).entries}) for take in every]
    found: dict[str, Decided | None] = {}
    called: dict[str, Called] = {}
    for function, entry in chosen.items():
        points = [({one.name: take(one) for one in entry.sizes}, of[function]) for take, of in others if function in of]
        if entry.sizes:
            found[function] = _decided(at, places, entry, points, of_data.get(function, SizesOfData()))
            texts = {name: spec_text(spec) for name, spec in entry.arguments.items()} if entry.was_recorded else {}
            numbers = varying_numbers(entry, points)
            called[function] = Called(numbers, texts, {name: of.ends(entry.sizes) for name, of in numbers.items()})
    return found, called


def _decided(
    at: Callable[[Take], Definitions],
    places: Places,
    entry: Entry,
    others: Sequence[tuple[Point, Entry]],
    of_data: SizesOfData,
) -> Decided | None:
    """Of a function that decides by a size, whether only its largest size is another case, as that at which a part of
    a table is all of it."""
    from mugraph.trace.run.unknown_size import decided_at

    reason = decided_at(entry, others, places, of_data)
    if reason is None:
        return None
    alike = tuple(replace(one, largest=_before_largest(one)) for one in entry.sizes)
    before = next((one for one in at(_before_largest).entries if one.function == entry.function), None)
    if before is None:
        return Decided(reason)
    before = replace(before, sizes=alike, on_gpu=entry.on_gpu)
    if decided_at(before, others, places, of_data) is None:
        return Decided(reason, alike)
    return Decided(reason)


def _before_largest(size: SizeRange) -> int:
    """The largest size but one, where there is another one below it."""
    return max(size.least + 1, size.largest - 1)

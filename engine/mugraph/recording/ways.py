"""The ways in which functions of a file were called: with a mask and without one, one token and many dimensions, this
flag and that one. A region is made for one way. So a file is traced once for each way that takes time, and a function
may have several regions for the same code."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from mugraph.ir.region import Trace
from mugraph.recording.memory import Recorded, Seen, fitting, for_tracing
from mugraph.recording.size_ranges import Ranged, ranged, several
from mugraph.recording.withheld import Bindings, asked_before, fitted
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.shapes import BadShapes, TensorSpec, parse_spec

MOST = 3
"""Ways that are traced, the one that took longest among them: each is traced, and searched, by itself."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
LEAST = 0.05
"""Part of a function's time that calls of a way take at least, for a kernel of their own."""


@dataclass(frozen=True)
class Way:
    """What tracing takes: a set of arguments for each function that was called in this way, in words and as it was.

    comments: by function, where a size has the range of sizes that its calls had, what says so; then for all of them
    """

    recorded_shapes: RecordedShapes
    pictures: Mapping[str, Picture]
    comments: Mapping[str, str] = field(default_factory=dict[str, str])


def other_ways(path: Path, text: str) -> list[Way]:
    """Those besides the one that each function spent most time in; the ways of one function are numbered by their
    time, and each Way has those of one number."""
    recording, functions = fitting(path, text)
    if recording is None:
        return []
    numbered = [_grouped(function.sets) for function in functions.values()]
    found: list[Way] = []
    for number in range(1, MOST):
        chosen = {
            name: groups[number] for name, groups in zip(functions, numbered, strict=True) if len(groups) > number
        }
        shapes, pictures = for_tracing(path, recording, chosen)
        if shapes or pictures:
            found.append(Way(shapes, pictures))
    for number, with_several in product(range(MOST), (False, True)):
        sizes = {
            name: one
            for name, groups in zip(functions, numbered, strict=True)
            if len(groups) > number and (one := _as_comment(groups[number], with_several)) is not None
        }
        shapes, pictures = for_tracing(path, recording, {name: [one.like] for name, one in sizes.items()})
        if sizes:
            said = {name: one.arguments for name, one in sizes.items()}
            found.append(Way({**shapes, **said}, pictures, {name: one.comment for name, one in sizes.items()}))
    return found


def _as_comment(calls: Sequence[Recorded], with_several: bool) -> Ranged | None:
    """with_several: what varies in several sizes, if that are more calls than vary in one"""
    one = ranged(calls)
    if not with_several:
        return one
    more = several(calls)
    return more if more is not None and (one is None or more.calls > one.calls) else None


def with_way(
    trace: Trace, more: Trace, calls: Mapping[str, Sequence[Seen]], text: str, *, ranged_only: bool = False
) -> Trace:
    """The trace with regions of another way's, after its own: those that take recorded calls which no region of the
    same code takes yet.

    ranged_only: of `more`, which was traced for a range of a size, regions that could not have it are left out
    """
    bindings = Bindings(text)
    regions = list(trace.regions)
    for region in more.regions:
        if ranged_only and region.dynamic is None:
            regions = [
                replace(one, alike_for=region.alike_for or one.alike_for) if one == region else one for one in regions
            ]
            continue
        before = asked_before(region, trace.regions if bindings.in_loop(region) else regions)
        seen = calls.get(region.function, ())
        if region.status is None and seen and fitted(region, seen, bindings.before(region), before).calls:
            regions.append(region)
    return replace(trace, regions=tuple(regions), dependencies={**more.dependencies, **trace.dependencies})


def _grouped(sets: Sequence[Recorded]) -> list[list[Recorded]]:
    """The sets by their way, that with the most time first. The first set, which tracing takes, is of the first way.
    Sets that differ from the longest of their way in whole numbers come last, as ways of their own: whether a region
    asks for the number is known when it is traced (`with_way` leaves out what adds no call)."""
    groups: dict[Hashable, list[Recorded]] = {}
    for one in sets:
        if not one.wanted_of:  # one that was not pictured is like another that was
            groups.setdefault(_way(one), []).append(one)
    groups = {way: group for way, group in groups.items() if any(one.usable for one in group)}
    total = sum(one.seconds for one in sets) or 1.0
    longest = sorted(groups.values(), key=lambda group: -sum(one.seconds for one in group))
    found = [*longest[:1], *(one for one in longest[1:] if sum(each.seconds for each in one) >= LEAST * total)]
    if len(found) >= MOST:
        return found
    by_number: dict[Hashable, list[Recorded]] = {}
    for group in found:
        for one in group:
            if one.numbers != group[0].numbers and None not in one.numbers.values():
                by_number.setdefault((_way(one), tuple(sorted(one.numbers.items()))), []).append(one)
    further = sorted(by_number.values(), key=lambda group: -sum(one.seconds for one in group))
    return [*found, *(one for one in further if sum(each.seconds for each in one) >= LEAST * total)]


def _way(one: Recorded) -> Hashable:
    """Equal for calls that differ only in sizes."""
    arguments = tuple((name, _kind(text)) for name, text in sorted(one.arguments.items()))
    return arguments, tuple(sorted(one.opaque.items())), one.structure, tuple(sorted((one.init or {}).items()))


def _kind(text: str) -> Hashable:
    """Of a tensor its type and number of dimensions; else what it is. Numbers alone are no way of their own."""
    try:
        spec = parse_spec(text)
    except BadShapes:
        return text
    if isinstance(spec, TensorSpec):
        return spec.dtype, len(spec.shape)
    return "a number" if _NUMBER.fullmatch(text) else text

"""One region from traces of the same code at several sizes: what they have in common, and what varies with the size.

A region may have every size of a declared range if three traces agree: at the largest size, at one between and at the
least. They must make the same calls on the same values, and all that varies must be the same whole multiple of the size
in each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.ranges import DynamicSize, SizeRange, dense_strides, multiple, times
from mugraph.ir.region import Argument, Call, Region, TensorInfo
from mugraph.trace.regions.size_words import listed, other_calls, other_values, said, same_kind

_EQUALS = re.compile(r"(?P<what>.*) == (?P<value>\d+)", re.DOTALL)


class Varies(Exception):
    """Why a size cannot be dynamic: one sentence's end, after "b cannot have a range: "."""


def with_ranges(
    largest: Sequence[Region],
    samples: Sequence[Sequence[Region]],
    ranges: Mapping[str, SizeRange],
    decisions: Mapping[str, str | None],
) -> list[Region]:
    """The regions of the trace at the largest sizes, each with what varies in it.

    samples:   further traces of the file, each at a sample of every range, the least last
    ranges:    those of the functions that were run
    decisions: functions that were run with a range -> why they do not do the same at all sizes; None where they do
    """
    found = [_of_samples(region, samples, ranges) for region in largest]
    return [_undecided(region, decisions) for region in found]


def _undecided(region: Region, decisions: Mapping[str, str | None]) -> Region:
    """A function that was not run for its own sake can have a range only if all that were run can."""
    made = region.dynamic
    if made is None:
        return region
    every = (reason for reason in decisions.values() if reason is not None)
    reason = decisions[region.function] if region.function in decisions else next(every, None)
    if reason is None:
        return region
    return replace(
        region, status="unsupported", reason=f"{made.range.name} cannot have a range: {reason}", dynamic=None
    )


def _same_place(region: Region, sample: Sequence[Region]) -> Region | None:
    found = [r for r in sample if (r.function, r.range, r.unit) == (region.function, region.range, region.unit)]
    if not found and region.status is None:  # what failed is told of the whole function
        found = [r for r in sample if r.function == region.function and r.status is not None]
    return found[0] if found else None


def _of_samples(region: Region, samples: Sequence[Sequence[Region]], ranges: Mapping[str, SizeRange]) -> Region:
    others = [_same_place(region, sample) for sample in samples]
    if region.status is not None or all(_alike(region, other) for other in others):
        return region
    reasons: list[str] = []
    own = ranges.get(region.function)
    for size in dict.fromkeys(ranges.values()) if own is None else [own]:
        try:
            return _dynamic(region, others, samples, size)
        except Varies as error:
            reasons.append(f"{size.name} cannot have a range: {error}")
    return replace(region, status="unsupported", reason=reasons[0])


def _alike(region: Region, other: Region | None) -> bool:
    return other is not None and replace(other, names=region.names) == region


def _dynamic(
    region: Region, others: Sequence[Region | None], every: Sequence[Sequence[Region]], size: SizeRange
) -> Region:
    """Raises Varies. others: the region at other sizes; every: all the regions there"""
    samples = [size.samples[min(at, len(size.samples) - 1)] for at in range(len(others))]
    sizes = [size.largest, *samples]
    seen = [region]
    for at, other, there in zip(samples, others, every, strict=True):
        if other is not None and other.status is not None:
            raise Varies(f"with {size.name} = {at}: {other.reason}")
        if other is None or len(other.calls) != len(region.calls):
            made = [call for one in there if one.function == region.function for call in one.calls]
            raise Varies(other_calls(region.calls, made, size, at))
        seen.append(other)
    for at, other in zip(samples, seen[1:], strict=True):
        if not _same_values(region, other):
            raise Varies(other_values(region, other, size, at))
    shapes: dict[int, tuple[int, ...]] = {}
    strides: dict[int, tuple[int, ...]] = {}
    dense: set[int] = set()
    seen_outside = {named.value for named in (*region.live_ins, *region.live_outs)}
    makers = {value: said(call) for call in region.calls for value in call.outputs}
    makers |= {live_in.value: live_in.expression for live_in in region.live_ins}
    for value in region.values:
        infos, what = [one.values[value] for one in seen], f"{makers.get(value, 'a tensor')} has"
        try:
            shapes[value], strides[value] = general_info(infos, sizes, what)
        except Varies:
            if value in seen_outside or not all(info.strides == dense_strides(info.shape) for info in infos):
                raise
            dims = zip(*(info.shape for info in infos), strict=True)
            shapes[value] = tuple(_factor(of_one, sizes, what) for of_one in dims)
            dense.add(value)
    calls = tuple(general_call(made, sizes, size) for made in zip(*(one.calls for one in seen), strict=True))
    shapes = {value: factors for value, factors in shapes.items() if any(factors)}
    strides = {value: factors for value, factors in strides.items() if any(factors)}
    made = DynamicSize(size, shapes, strides, calls, frozenset(dense))
    return replace(region, dynamic=made, guards=tuple(_guards(region, seen, made, sizes)))


def _same_values(region: Region, other: Region) -> bool:
    same = (region.live_ins, region.live_outs) == (other.live_ins, other.live_outs)
    if not same or region.values.keys() != other.values.keys():
        return False
    return all(same_kind(info, other.values[value]) for value, info in region.values.items())


def general_info(
    infos: Sequence[TensorInfo], sizes: Sequence[int], what: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many times the size each dimension and each stride of a value is, seen at several sizes. Raises Varies.

    what: the value, to begin a sentence with: "slicing in line 6 has"
    """
    dims = zip(*(info.shape for info in infos), strict=True)
    return tuple(_factor(of_one, sizes, what) for of_one in dims), _strides(infos, sizes, what)


def _strides(infos: Sequence[TensorInfo], sizes: Sequence[int], what: str) -> tuple[int, ...]:
    """How many times the size each stride is. The stride of a dimension of size 1 says nothing."""
    found: list[int] = []
    for position, stride in enumerate(infos[0].strides):
        telling = [at for at, info in enumerate(infos) if info.shape[position] != 1]
        if stride == 0 or len(telling) < 2:
            found.append(0)
        else:
            strides = [infos[at].strides[position] for at in telling]
            found.append(_factor(strides, [sizes[at] for at in telling], f"{what} strides with"))
    return tuple(found)


def _factor(numbers: Sequence[int], sizes: Sequence[int], what: str) -> int:
    """How many times the size the number is; 0 where it is the same at all. Raises Varies for anything else.

    what: begins the sentence that says so, "slicing in line 6 has"
    """
    if len(set(numbers)) == 1:
        return 0
    factor = numbers[0] // sizes[0]
    if factor < 1 or any(number != factor * size for number, size in zip(numbers, sizes, strict=True)):
        square = numbers[0] // sizes[0] ** 2
        grows = square > 0 and all(n == square * size**2 for n, size in zip(numbers, sizes, strict=True))
        why = "which grows with its square" if grows else "which is no whole multiple of it"
        raise Varies(f"{what} {listed(numbers)} where it is {listed(sizes)}, {why}")
    return factor


def general_call(made: Sequence[Call], sizes: Sequence[int], size: SizeRange) -> Call:
    """One call, as it was made with several sizes, with multiples of the size. Raises Varies."""
    first = made[0]
    for other, at in zip(made[1:], sizes[1:], strict=True):
        if (other.target, other.outputs, tuple(other.kwargs)) != (first.target, first.outputs, tuple(first.kwargs)):
            raise Varies(f"{said(first)} is {said(other)} with {size.name} = {at}")
        if len(other.args) != len(first.args):
            raise Varies(f"{said(first)} has other arguments with {size.name} = {at}")
    args = tuple(_argument(first, [one.args[at] for one in made], sizes) for at in range(len(first.args)))
    kwargs = {key: _argument(first, [one.kwargs[key] for one in made], sizes) for key in first.kwargs}
    return replace(first, args=args, kwargs=kwargs)


def _argument(call: Call, seen: Sequence[Argument], sizes: Sequence[int]) -> Argument:
    first = seen[0]
    if all(type(other) is type(first) and other == first for other in seen):
        return first
    if all(type(one) is int for one in seen):
        numbers = [one for one in seen if isinstance(one, int)]
        return multiple(_factor(numbers, sizes, f"{said(call)} is given"))
    tuples = [one for one in seen if isinstance(one, tuple)]
    if len(tuples) == len(seen) and len({len(one) for one in tuples}) == 1:
        return tuple(_argument(call, items, sizes) for items in zip(*tuples, strict=True))
    slices = [(one.start, one.stop, one.step) for one in seen if isinstance(one, slice)]
    if len(slices) == len(seen):
        return slice(*(_argument(call, parts, sizes) for parts in zip(*slices, strict=True)))
    raise Varies(f"{said(call)} is given a number that is computed from it")


def _guards(region: Region, seen: Sequence[Region], made: DynamicSize, sizes: Sequence[int]) -> Iterator[str]:
    """Guards that hold at all sizes. If the code has read the size as a number, the guard compares it with that of a
    tensor."""
    if len({len(one.guards) for one in seen}) != 1:
        raise Varies("the conditions under which this code was traced differ from size to size")
    for guards in zip(*(one.guards for one in seen), strict=True):
        if len(set(guards)) == 1:
            yield guards[0]
            continue
        parts = [_EQUALS.fullmatch(guard) for guard in guards]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) or len({part["what"] for part in found}) > 1:
            raise Varies(f"the condition {guards[0]} depends on it")
        factor = _factor([int(part["value"]) for part in found], sizes, f"{found[0]['what']} is")
        yield f"{found[0]['what']} == {times(factor, size_text(region, made))}"


def size_text(region: Region, made: DynamicSize, names: Mapping[int, str] | None = None) -> str:
    """The size as an expression over the live-ins. names: what they are called, if not what the user's code says.

    Raises Varies where no live-in has it.
    """
    for live_in in region.live_ins:
        for position, factor in enumerate(made.shapes.get(live_in.value, ())):
            if factor:
                name = names[live_in.value] if names is not None else live_in.expression
                return f"{name}.shape[{position}]" + (f" // {factor}" if factor > 1 else "")
    raise Varies("no tensor that the code reads has it")

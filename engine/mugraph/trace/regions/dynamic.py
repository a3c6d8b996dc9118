"""One region from traces of the same code at several sizes: what they have in common, and what varies with the sizes.

A region may have every size of a declared range if the traces agree: at the largest size, at one between and at the
least, and of several sizes with each of them by itself between. They must make the same calls on the same values, and
all that varies must be the same product of the sizes in each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.ir.ranges import (
    Compared,
    DynamicSize,
    Point,
    Product,
    SizeRange,
    Take,
    largest_point,
    leading,
    product_of,
)
from mugraph.ir.region import Argument, Call, Named, Region, TensorInfo
from mugraph.ir.sized_arguments import multiple, sized, sized_of
from mugraph.trace.regions.clipped import clipped, with_largest
from mugraph.trace.regions.divided import divided
from mugraph.trace.regions.growing_masks import with_corners
from mugraph.trace.regions.size_words import listed, other_calls, other_values, said, same_kind

_EQUALS = re.compile(r"(?P<what>.*) == (?P<value>\d+)", re.DOTALL)
_PATH = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
"""A name, or an attribute of one."""


class Varies(Exception):
    """Why a size cannot be dynamic: one sentence's end, after "b cannot have a range: "."""


@dataclass(frozen=True)
class Called:
    """What a function was run with. numbers, recorded: as `arguments` and `recorded` of DynamicSize. ends: of the
    numbers, the least and the largest"""

    numbers: Mapping[str, Product]
    recorded: Mapping[str, str]
    ends: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Decided:
    """reason: why a function does not do the same at all sizes, as the end of a sentence. alike: ranges that end one
    before, in which it does; none: there is no such"""

    reason: str
    alike: tuple[SizeRange, ...] = ()

    def is_no_matter_for(self, made: DynamicSize) -> bool:
        """Whether the region's ranges end before the size at which something else is done (clipped.py)."""
        ends = {one.name: one.largest for one in self.alike}
        return all(one.largest <= ends.get(one.name, 0) for one in made.ranges)


def with_ranges(
    largest: Sequence[Region],
    samples: Sequence[Sequence[Region]],
    taken: Sequence[Take],
    ranges: Mapping[str, tuple[SizeRange, ...]],
    decisions: Mapping[str, Decided | None],
    called: Mapping[str, Called],
) -> list[Region]:
    """The regions of the trace at the largest sizes, each with what varies in it.

    samples:   further traces of the file, each at the sizes that one of `taken` takes of every range
    ranges:    those of the functions that were run
    decisions: of functions that were run with a range; None where they do the same at all sizes
    called:    of functions that were run with a range, with what

    Of code that is executed in several ways (partition.py), only the first has a region: which way is which at other
    sizes is not known.
    """
    largest = [one for one in largest if one is _same_place(one, largest) or _does_not_vary(one, samples)]
    found = [_of_samples(region, samples, taken, ranges) for region in largest]
    return [_with_arguments(_undecided(region, decisions), called) for region in found]


def _with_arguments(region: Region, called: Mapping[str, Called]) -> Region:
    given = called.get(region.function)
    if given is None or region.status is not None:
        return region
    if region.dynamic is None:
        return replace(region, alike_for=given.ends)
    return replace(region, dynamic=replace(region.dynamic, arguments=given.numbers, recorded=given.recorded))


def _undecided(region: Region, decisions: Mapping[str, Decided | None]) -> Region:
    """A function that was not run for its own sake can have a range only if all that were run can."""
    made = region.dynamic
    if made is None:
        return region
    every = (one for one in decisions.values() if one is not None and not one.is_no_matter_for(made))
    decided = decisions[region.function] if region.function in decisions else next(every, None)
    if decided is None or decided.is_no_matter_for(made):
        return region
    return replace(region, status="unsupported", reason=refusal(made.ranges, decided.reason), dynamic=None)


def refusal(ranges: Sequence[SizeRange], reason: object) -> str:
    """ "b cannot have a range: ...", "b and t cannot have ranges: ..."."""
    every = sorted(ranges, key=lambda one: one.name)
    names = " and ".join(f"{one.name} ({one.of_data})" if one.of_data else one.name for one in every)
    return f"{names} cannot have {'a range' if len(ranges) == 1 else 'ranges'}: {reason}"


def _same_place(region: Region, sample: Sequence[Region]) -> Region | None:
    found = [r for r in sample if (r.function, r.range, r.unit) == (region.function, region.range, region.unit)]
    if not found and region.status is None:  # what failed is told of the whole function
        found = [r for r in sample if r.function == region.function and r.status is not None]
    return found[0] if found else None


def _of_samples(
    region: Region,
    samples: Sequence[Sequence[Region]],
    taken: Sequence[Take],
    ranges: Mapping[str, tuple[SizeRange, ...]],
) -> Region:
    others = [_same_place(region, sample) for sample in samples]
    if region.status is not None or _does_not_vary(region, samples):
        return region
    reasons: list[str] = []
    own = ranges.get(region.function)
    for sizes in dict.fromkeys(ranges.values()) if own is None else [own]:
        points = [{one.name: take(one) for one in sizes} for take in taken]
        there = [at for at, point in enumerate(points) if point != largest_point(sizes)]
        try:
            seen = [(points[at], others[at], samples[at]) for at in there]
            return _dynamic(region, seen, sizes)
        except Varies as error:
            reasons.append(refusal(sizes, error))
    return replace(region, status="unsupported", reason=reasons[0])


def _does_not_vary(region: Region, samples: Sequence[Sequence[Region]]) -> bool:
    return all(any(_alike(region, other) for other in sample) for sample in samples)


def _alike(region: Region, other: Region | None) -> bool:
    return other is not None and replace(other, names=region.names) == region


def _dynamic(
    region: Region, samples: Sequence[tuple[Point, Region | None, Sequence[Region]]], ranges: Sequence[SizeRange]
) -> Region:
    """Raises Varies. samples: the region at other sizes, and all the regions there"""
    points: list[Point] = [largest_point(ranges), *(point for point, _, _ in samples)]
    seen = [region]
    for point, other, there in samples:
        at = Compared(ranges, point)
        if other is not None and other.status is not None:
            raise Varies(f"with {at.here}: {other.reason}")
        if other is None or len(other.calls) != len(region.calls):
            made = [call for one in there if one.function == region.function for call in one.calls]
            raise Varies(other_calls(region.calls, made, at))
        seen.append(other)
    region, *_ = seen = with_corners(seen)
    for (point, _, _), other in zip(samples, seen[1:], strict=True):
        if not _same_values(region, other):
            raise Varies(other_values(region, other, Compared(ranges, point)))
    shapes: dict[int, tuple[Product, ...]] = {}
    strides: dict[int, tuple[Product, ...]] = {}
    makers = {value: said(call) for call in region.calls for value in call.outputs}
    makers |= {live_in.value: live_in.expression for live_in in region.live_ins}
    for value in region.values:
        infos, what = [one.values[value] for one in seen], f"{makers.get(value, 'a tensor')} has"
        shapes[value], strides[value] = general_info(infos, points, what)
    calls = tuple(general_call(made, points) for made in zip(*(one.calls for one in seen), strict=True))
    shapes = {value: products for value, products in shapes.items() if any(products)}
    strides = {value: products for value, products in strides.items() if any(products)}
    numbers = _numbers(seen, points)
    read = [*shapes.values(), *strides.values(), tuple(numbers.values())]
    used = {name for found in read for one in found for name in one.sizes}
    first, *others = leading([one for one in ranges if one.name in used] or ranges)
    made = DynamicSize(first, shapes, strides, calls, tuple(others), numbers)
    found = replace(region, dynamic=made, guards=tuple(_guards(region, made)))
    return divided(_whole(clipped(found, seen[1:])))


def _whole(region: Region) -> Region:
    """With all of the sizes that come of data, of which only some could be traced."""
    for one in region.dynamic.ranges if region.dynamic is not None else ():
        if one.up_to > one.largest and region.dynamic is not None:
            region = with_largest(region, region.dynamic, one, one.whole)
    return region


def _same_values(region: Region, other: Region) -> bool:
    same = (region.live_ins, region.live_outs) == (other.live_ins, other.live_outs)
    if not same or region.values.keys() != other.values.keys():
        return False
    return all(same_kind(info, other.values[value]) for value, info in region.values.items())


def general_info(
    infos: Sequence[TensorInfo], points: Sequence[Point], what: str
) -> tuple[tuple[Product, ...], tuple[Product, ...]]:
    """What each dimension and each stride of a value is a product of, seen at several sizes. Raises Varies.

    what: the value, to begin a sentence with: "slicing in line 6 has"
    """
    dims = zip(*(info.shape for info in infos), strict=True)
    return tuple(_product(of_one, points, what) for of_one in dims), _strides(infos, points, what)


def _strides(infos: Sequence[TensorInfo], points: Sequence[Point], what: str) -> tuple[Product, ...]:
    """What each stride is a product of. The stride of a dimension of size 1 says nothing."""
    found: list[Product] = []
    for position, stride in enumerate(infos[0].strides):
        telling = [at for at, info in enumerate(infos) if info.shape[position] != 1]
        if stride == 0 or len(telling) < 2:
            found.append(Product())
        else:
            strides = [infos[at].strides[position] for at in telling]
            found.append(_product(strides, [points[at] for at in telling], f"{what} strides with"))
    return tuple(found)


def _product(numbers: Sequence[int], points: Sequence[Point], what: str) -> Product:
    """The product of the sizes that the number is. Raises Varies where it is none.

    what: begins the sentence that says so, "slicing in line 6 has"
    """
    found = product_of(numbers, points)
    if found is not None:
        return found
    names = sorted(points[0])
    if len(names) == 1:
        sizes = [point[names[0]] for point in points]
        raise Varies(f"{what} {listed(numbers)} where it is {listed(sizes)}, which is no whole multiple or sum of it")
    sizes = "; ".join(listed([point[name] for name in names]) for point in points)
    raise Varies(f"{what} {listed(numbers)} where they are {sizes}, which is no product or sum of them")


def general_call(made: Sequence[Call], points: Sequence[Point]) -> Call:
    """One call, as it was made with several sizes, with products of them. Raises Varies."""
    first = made[0]
    for other, point in zip(made[1:], points[1:], strict=True):
        here = ", ".join(f"{name} = {size}" for name, size in point.items())
        if (other.target, other.outputs, tuple(other.kwargs)) != (first.target, first.outputs, tuple(first.kwargs)):
            raise Varies(f"{said(first)} is {said(other)} with {here}")
        if len(other.args) != len(first.args):
            raise Varies(f"{said(first)} has other arguments with {here}")
    args = tuple(_argument(first, [one.args[at] for one in made], points) for at in range(len(first.args)))
    kwargs = {key: _argument(first, [one.kwargs[key] for one in made], points) for key in first.kwargs}
    return replace(first, args=args, kwargs=kwargs)


def _argument(call: Call, seen: Sequence[Argument], points: Sequence[Point]) -> Argument:
    first = seen[0]
    if all(type(other) is type(first) and other == first for other in seen):
        return first
    if all(type(one) is int for one in seen):
        numbers = [one for one in seen if isinstance(one, int)]
        return multiple(_product(numbers, points, f"{said(call)} is given"))
    if all(type(one) in (int, float) for one in seen):
        number = sized_of([float(one) for one in seen if isinstance(one, int | float)], points)
        if number is not None:
            return sized(number)
    tuples = [one for one in seen if isinstance(one, tuple)]
    if len(tuples) == len(seen) and len({len(one) for one in tuples}) == 1:
        return tuple(_argument(call, items, points) for items in zip(*tuples, strict=True))
    slices = [(one.start, one.stop, one.step) for one in seen if isinstance(one, slice)]
    if len(slices) == len(seen):
        return slice(*(_argument(call, parts, points) for parts in zip(*slices, strict=True)))
    raise Varies(f"{said(call)} is given a number that is computed from it")


def _numbers(seen: Sequence[Region], points: Sequence[Point]) -> dict[str, Product]:
    """Whole numbers that the code reads and that vary with the sizes, by the expressions that read them. Raises
    Varies."""
    if len({len(one.guards) for one in seen}) != 1:
        raise Varies("the conditions under which this code was traced differ from size to size")
    found: dict[str, Product] = {}
    for guards in zip(*(one.guards for one in seen), strict=True):
        if len(set(guards)) == 1:
            continue
        parts = [part for guard in guards if (part := _EQUALS.fullmatch(guard)) is not None]
        if len(parts) < len(guards) or len({part["what"] for part in parts}) > 1:
            raise Varies(f"the condition {guards[0]} depends on it")
        what = parts[0]["what"]
        found[what] = _product([int(part["value"]) for part in parts], points, f"{what} is")
    return found


def _guards(region: Region, made: DynamicSize) -> Iterator[str]:
    """Guards that hold at all sizes. If the code has read a size as a number, the guard compares it with that of a
    tensor; a number that is the only one to say a size is a whole number."""
    texts = size_texts(region, made)
    own = {owner.number for owner in owners(region, made).values()}
    for guard in region.guards:
        part = _EQUALS.fullmatch(guard)
        of = made.numbers.get(part["what"]) if part is not None else None
        if part is None or of is None:
            yield guard
        elif part["what"] in own:
            yield f"type({part['what']}) is int"
        else:
            inner = {name: text if " " not in text else f"({text})" for name, text in texts.items()}
            yield f"{part['what']} == {of.text(inner if of.factor != 1 or len(of.names) > 1 or of.sums else texts)}"


@dataclass(frozen=True)
class Owner:
    """Where a size is read: a dimension of a live-in, or a whole number, by the expression that reads it. of: what it
    is of the size, a multiple, or one of a sum of it and of sizes that are known"""

    of: Product
    live_in: Named | None = None
    dimension: int = 0
    number: str = ""

    def text(self, names: Mapping[int, str] | None, numbers: Mapping[str, str]) -> str:
        """names: of live-ins, if not what the user's code says; numbers: likewise"""
        if self.live_in is None:
            return numbers.get(self.number, self.number)
        tensor = names[self.live_in.value] if names is not None else self.live_in.expression
        return f"{tensor}.shape[{self.dimension}]"


def size_texts(
    region: Region,
    made: DynamicSize,
    names: Mapping[int, str] | None = None,
    numbers: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Each size, as an expression over the live-ins and the whole numbers that the region reads. names: what live-ins
    are called, if not what the user's code says; numbers: likewise

    Raises Varies where a size is none of these, or a multiple of it.
    """
    found: dict[str, str] = {}
    for size, owner in owners(region, made).items():
        of, read = owner.of, owner.text(names, numbers or {})
        read += f" // {of.factor}" if of.factor > 1 else ""
        inner = {name: f"({text})" if " " in text else text for name, text in found.items()}
        found[size] = of.sums[0].solved(size, read, inner) if of.sums else read
    return found


def owners(region: Region, made: DynamicSize) -> Mapping[str, Owner]:
    """Where each size is read: of a tensor where there is one that has it. Raises Varies where there is none."""
    found: dict[str, Owner] = {}
    dims = [
        Owner(of, live_in, position)
        for live_in in region.live_ins
        for position, of in enumerate(made.shapes.get(live_in.value, ()))
    ]
    numbers = [Owner(of, number=what) for what, of in made.numbers.items() if _PATH.fullmatch(what)]
    _solve(found, dims)
    _solve(found, [*dims, *numbers])
    lacking = sorted(one.name for one in made.ranges if one.name not in found)
    if lacking:
        raise Varies(f"no tensor that the code reads has {'it' if len(made.ranges) == 1 else lacking[0]}")
    return found


def _solve(found: dict[str, Owner], given: Sequence[Owner]) -> None:
    """Adds the sizes that these say: multiples first, then sums of which all but one size are known."""
    for owner in given:
        if len(owner.of.names) == 1 and not owner.of.sums:
            found.setdefault(owner.of.names[0], owner)
    sums = [owner for owner in given if not owner.of.names and len(owner.of.sums) == 1]
    while True:
        unknown = [(owner, [name for name in owner.of.sums[0].names if name not in found]) for owner in sums]
        solvable = next(((owner, names[0]) for owner, names in unknown if len(names) == 1), None)
        if solvable is None:
            return
        found[solvable[1]] = solvable[0]

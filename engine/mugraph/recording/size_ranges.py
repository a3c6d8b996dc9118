"""Recorded calls that differ in sizes, as the comment that would say it: `t=1..40, x=f32[1, t, 768]`. A whole number
among the arguments is a size as well: a position, up to which a cache is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import prod

from msgspec.structs import replace

from mugraph.ir.ranges import Product
from mugraph.ir.sums import Sum, sum_of
from mugraph.recording.argument_specs import spec_of, specs_of, texts_of
from mugraph.recording.memory import Recorded
from mugraph.recording.strides import laid
from mugraph.trace.syntax.shapes import STRIDE, Expression, Spec, TensorSpec
from mugraph.trace.syntax.size_ranges import LARGEST

_NAMES = ("t", "n", "m", "s", "size", "rows")
_SIZES = 3
"""Sizes of one comment that are taken from a recording: each doubles the sizes at which times are taken."""
_MOST = 8
"""Sets that others are compared with."""
_Place = tuple[str, int]
"""An argument and one of its dimensions; NUMBER: it is a whole number itself."""
NUMBER = -1


@dataclass(frozen=True)
class Ranged:
    """like: one of the calls, with its object if one was pictured. arguments: of all, sizes with their ranges first;
    without those that no comment describes, which are as `like` has them. calls: how many there were"""

    like: Recorded
    arguments: Mapping[str, str]
    calls: int = 0

    @property
    def comment(self) -> str:
        """ "" where no comment can say all."""
        if self.like.opaque:
            return ""
        return "# mugraph: " + ", ".join(f"{name}={text}" for name, text in self.arguments.items())


def ranged(sets: Sequence[Recorded]) -> Ranged | None:
    """Calls that are alike but for one size; of several such groups, the one with most calls. None where there is none,
    or where words cannot say what the calls are: strides that no sizes give, a number that varies as well.

    sets: of one way in which a function is called, what took longest first
    """
    told = _told(sets)
    return _of_one_size(told) or _of_one_size([one for one in told if not one.strides])


def _of_one_size(told: Sequence[Recorded]) -> Ranged | None:
    groups: list[tuple[int, Recorded, list[Recorded], frozenset[_Place]]] = []
    for first in told[:_MOST]:
        shapes, alike = _shapes(first), dict[frozenset[_Place], list[Recorded]]()
        for one in told:
            if (places := _differs(first, shapes, one)) is not None and places:
                alike.setdefault(places, []).append(one)
        groups += [(sum(one.calls for one in (first, *rest)), first, rest, places) for places, rest in alike.items()]
    for _, first, others, places in sorted(groups, key=lambda group: -group[0]):
        if (found := _as_range(first, others, places)) is not None:
            return found
    return None


def several(sets: Sequence[Recorded]) -> Ranged | None:
    """Calls that are alike but for two or three sizes, the most that are. None as of `ranged`, and where there are so
    few different calls that any two sizes would do."""
    told = _told(sets)
    return _of_several(told) or _of_several([one for one in told if not one.strides])


def _of_several(told: Sequence[Recorded]) -> Ranged | None:
    found: list[Ranged] = []
    for first in told[:_MOST]:
        shapes = _shapes(first)
        alike = [(one, places) for one in told if (places := _differs(first, shapes, one)) is not None]
        ranges = _as_ranges([one for one, _ in alike], sorted({place for _, places in alike for place in places}))
        found += [ranges] if ranges is not None else []
    return max(found, key=lambda one: one.calls, default=None)


def _told(sets: Sequence[Recorded]) -> list[Recorded]:
    """Those of which words say all that differs: objects among the arguments are as pictured. Calls with many values of
    whole numbers stand for two: with the least, and with the largest."""
    found: list[Recorded] = []
    for one in sets:
        if one.wanted_of:
            continue
        many = [name for name, number in one.numbers.items() if number is None]
        if not many:
            found.append(one)
        elif all(name in one.spans for name in many):
            calls = {0: min(1, one.calls), 1: max(0, one.calls - 1)}
            for end in calls:
                numbers = {**one.numbers, **{name: one.spans[name][end] for name in many}}
                found.append(replace(one, numbers=numbers, calls=calls[end]))
    return found


def _as_ranges(calls: Sequence[Recorded], places: Sequence[_Place]) -> Ranged | None:
    """Each dimension that varies is a whole multiple of a smaller one, or of a product of two, or a sum of smaller ones
    and a number, or a size of its own."""
    calls = _without_zeros(calls, places)
    shapes = [_shapes(one) for one in calls]
    values = {place: [_size(one, each, place) for one, each in zip(calls, shapes, strict=True)] for place in places}
    if not any(one.usable for one in calls):
        return None
    sizes: list[list[int]] = []
    products: dict[_Place, Product] = {}
    for place in sorted(places, key=lambda place: sum(values[place])):
        one = values[place]
        if not 1 <= min(one) <= max(one) <= LARGEST:
            return None
        products[place] = _of_sizes(one, sizes) or Product(1, (str(len(sizes)),))
        if products[place].names == (str(len(sizes)),):
            sizes.append(one)
    if not 2 <= len(sizes) <= _SIZES or len({*zip(*sizes, strict=True)}) <= len(sizes):
        return None
    first = next((one for one in calls if one.picture is not None), calls[0])
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join((*first.arguments, *first.arguments.values()))))
    names = [name for name in _NAMES if name not in words][: len(sizes)]
    strides = laid(calls, [{str(at): n for at, n in enumerate(point)} for point in zip(*sizes, strict=True)])
    if len(names) < len(sizes) or strides is None:
        return None
    said = {name: f"{min(one)}..{max(one)}" for name, one in zip(names, sizes, strict=True)}
    said |= _written(first, products, strides, {str(at): name for at, name in enumerate(names)})
    return Ranged(first, said, sum(one.calls for one in calls))


def _of_sizes(values: Sequence[int], sizes: Sequence[Sequence[int]]) -> Product | None:
    """What the values are of sizes, whose numbers stand for their names; None where they are neither a multiple of one
    or of a product of two, nor a sum. A sum must be that of two more different calls than it has sizes."""
    at = range(len(sizes))
    for of in [*((one,) for one in at), *combinations_with_replacement(at, 2)]:
        factor = _factor(values, [sizes[one] for one in of])
        if factor is not None:
            return Product(factor, tuple(map(str, of)))
    for of in [*((one,) for one in at), *combinations(at, 2)]:
        points = [*zip(*(sizes[one] for one in of), strict=True)]
        offsets = {value - sum(point) for value, point in zip(values, points, strict=True)}
        if len(offsets) == 1 and len({*points}) >= len(of) + 2:
            return Product(1, (), (Sum(tuple((str(one), 1) for one in of), offsets.pop()),))
    return None


def _factor(values: Sequence[int], sizes: Sequence[Sequence[int]]) -> int | None:
    """How many times the product of the sizes the values are; None where it is not the same in each."""
    products = [prod(each) for each in zip(*sizes, strict=True)]
    factor = values[0] // products[0]
    return factor if factor and all(n == factor * of for n, of in zip(values, products, strict=True)) else None


def _as_range(first: Recorded, others: Sequence[Recorded], places: frozenset[_Place]) -> Ranged | None:
    """Where each dimension that varies is a whole multiple of the one that is smallest, or of a sum with it."""
    calls = _without_zeros([first, *others], sorted(places))
    if len(calls) < 2 or not any(one.usable for one in calls):
        return None
    shapes = [_shapes(one) for one in calls]
    at = [*zip(calls, shapes, strict=True)]
    smallest = min(sorted(places), key=lambda place: _size(*at[0], place))
    sizes = [_size(*each, smallest) for each in at]
    products: dict[_Place, Product] = {}
    for place in places:
        values = [_size(*each, place) for each in at]
        if (factor := _factor(values, [sizes]) if sizes[0] else None) is not None:
            products[place] = Product(factor, ("0",))
        elif (found := sum_of(values, [{"0": size} for size in sizes])) is not None:
            products[place] = Product(found[0], (), (found[1],))
        else:
            return None
    if not 1 <= min(sizes) < max(sizes) <= LARGEST:
        return None
    first = calls[0]
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join((*first.arguments, *first.arguments.values()))))
    name = smallest[0] if smallest[1] == NUMBER else next((name for name in _NAMES if name not in words), None)
    strides = laid(calls, [{"0": size} for size in sizes])
    if name is None or strides is None:
        return None
    said = {name: f"{min(sizes)}..{max(sizes)}", **_written(first, products, strides, {"0": name})}
    like = next((one for one in calls if one.picture is not None), first)
    return Ranged(like, said, sum(one.calls for one in calls))


def _without_zeros(calls: Sequence[Recorded], places: Sequence[_Place]) -> list[Recorded]:
    """Those whose whole numbers, where they vary, are sizes: a position of zero is a call of its own."""
    numbers = [name for name, dim in places if dim == NUMBER]
    return [one for one in calls if all(one.numbers[name] for name in numbers)]


def _size(one: Recorded, shapes: Mapping[str, TensorSpec], place: _Place) -> int:
    argument, dim = place
    return shapes[argument].shape[dim] if dim != NUMBER else one.numbers[argument] or 0


def _written(
    like: Recorded,
    products: Mapping[_Place, Product],
    strides: Mapping[str, tuple[Product, ...]],
    called: Mapping[str, str],
) -> dict[str, str]:
    """The arguments as a comment has them, without those that are sizes of their own. called: the sizes' names"""
    said: dict[str, str] = {}
    for argument, text in like.arguments.items():
        if products.get((argument, NUMBER)) is None:
            said[argument] = _said(argument, spec_of(text), products, called)
            if argument in strides:
                steps = (of.text(called) if of else str(of.factor) for of in strides[argument])
                said[argument] += f".{STRIDE}({', '.join(steps)})"
    numbers = {argument: of.text(called) for (argument, dim), of in products.items() if dim == NUMBER}
    return {**said, **{argument: text for argument, text in numbers.items() if text != argument}}


def _said(argument: str, spec: Spec, products: Mapping[_Place, Product], called: Mapping[str, str]) -> str:
    """An argument as a comment has it."""
    if isinstance(spec, Expression):
        return spec.text
    if isinstance(spec, tuple):
        items = [_said(f"{argument}[{at}]", one, products, called) for at, one in enumerate(spec)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    of = [products.get((argument, dim)) for dim in range(len(spec.shape))]
    dims = [str(size) if one is None else one.text(called) for size, one in zip(spec.shape, of, strict=True)]
    return f"{spec.dtype}[{', '.join(dims)}]"


def _differs(first: Recorded, shapes: Mapping[str, TensorSpec], other: Recorded) -> frozenset[_Place] | None:
    """The dimensions in which a call has other sizes; None where it differs in something else."""
    if first.arguments.keys() != other.arguments.keys() or first.numbers.keys() != other.numbers.keys():
        return None
    if (first.init, first.structure, first.opaque) != (other.init, other.structure, other.opaque):
        return None
    others, texts, their = _shapes(other), texts_of(first.arguments), texts_of(other.arguments)
    if texts.keys() != their.keys():
        return None
    found: set[_Place] = set()
    for name, text in texts.items():
        one, two = shapes.get(name), others.get(name)
        if name in first.numbers and name in other.numbers:
            found |= {(name, NUMBER)} if first.numbers[name] != other.numbers[name] else set()
        elif one is None or two is None:
            if text != their[name]:
                return None
        elif one.dtype != two.dtype or len(one.shape) != len(two.shape):
            return None
        else:
            pairs = zip(one.shape, two.shape, strict=True)
            found |= {(name, dim) for dim, (a, b) in enumerate(pairs) if a != b}
    return frozenset(found)


def _shapes(one: Recorded) -> dict[str, TensorSpec]:
    """Of the arguments that are tensors."""
    return specs_of(one.arguments)

"""Recorded calls that differ in one size, as the comment that would say it: `t=1..40, x=f32[1, t, 768]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.recording.memory import Recorded
from mugraph.trace.syntax.shapes import BadShapes, TensorSpec, parse_spec
from mugraph.trace.syntax.size_ranges import LARGEST

_NAMES = ("t", "n", "size")
_MOST = 8
"""Sets that others are compared with."""
_Place = tuple[str, int]
"""An argument and one of its dimensions."""


@dataclass(frozen=True)
class Ranged:
    """like: one of the calls, with its object if one was pictured. arguments: of all, the size with its range first"""

    like: Recorded
    arguments: Mapping[str, str]

    @property
    def comment(self) -> str:
        return "# mugraph: " + ", ".join(f"{name}={text}" for name, text in self.arguments.items())


def ranged(sets: Sequence[Recorded]) -> Ranged | None:
    """Calls that are alike but for one size; of several such groups, the one with most calls. None where there is none,
    or where a comment cannot say what the calls are: an object, a stride, a number that varies as well.

    sets: of one way in which a function is called, what took longest first
    """
    told = [
        one
        for one in sets
        if not one.opaque and not one.strides and not one.wanted_of and None not in one.numbers.values()
    ]
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


def _as_range(first: Recorded, others: Sequence[Recorded], places: frozenset[_Place]) -> Ranged | None:
    """Where each dimension that varies is a whole multiple of the one that is smallest."""
    calls = [first, *others]
    shapes = [_shapes(one) for one in calls]
    smallest = min(sorted(places), key=lambda place: shapes[0][place[0]].shape[place[1]])
    sizes = [each[smallest[0]].shape[smallest[1]] for each in shapes]
    factors: dict[_Place, int] = {}
    for argument, dim in places:
        values = [each[argument].shape[dim] for each in shapes]
        factor = values[0] // sizes[0] if sizes[0] else 0
        if factor < 1 or any(value != factor * size for value, size in zip(values, sizes, strict=True)):
            return None
        factors[argument, dim] = factor
    if not 1 <= min(sizes) < max(sizes) <= LARGEST:
        return None
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join((*first.arguments, *first.arguments.values()))))
    name = next((name for name in _NAMES if name not in words), None)
    if name is None:
        return None
    said = {name: f"{min(sizes)}..{max(sizes)}"}
    for argument, text in first.arguments.items():
        said[argument] = _written(shapes[0].get(argument), text, argument, factors, name)
    return Ranged(next((one for one in calls if one.picture is not None), first), said)


def _written(spec: TensorSpec | None, text: str, argument: str, factors: Mapping[_Place, int], name: str) -> str:
    if spec is None:
        return text
    dims: list[str] = []
    for dim, size in enumerate(spec.shape):
        factor = factors.get((argument, dim))
        dims.append(str(size) if factor is None else name if factor == 1 else f"{factor} * {name}")
    return f"{spec.dtype}[{', '.join(dims)}]"


def _differs(first: Recorded, shapes: Mapping[str, TensorSpec], other: Recorded) -> frozenset[_Place] | None:
    """The dimensions in which a call has other sizes; None where it differs in something else."""
    if (first.arguments.keys(), first.init, first.structure) != (other.arguments.keys(), other.init, other.structure):
        return None
    others = _shapes(other)
    found: set[_Place] = set()
    for name, text in first.arguments.items():
        one, two = shapes.get(name), others.get(name)
        if one is None or two is None:
            if text != other.arguments[name]:
                return None
        elif one.dtype != two.dtype or len(one.shape) != len(two.shape):
            return None
        else:
            pairs = zip(one.shape, two.shape, strict=True)
            found |= {(name, dim) for dim, (a, b) in enumerate(pairs) if a != b}
    return frozenset(found)


def _shapes(one: Recorded) -> dict[str, TensorSpec]:
    """Of the arguments that are tensors."""
    found: dict[str, TensorSpec] = {}
    for name, text in one.arguments.items():
        try:
            spec = parse_spec(text)
        except BadShapes:
            continue
        if isinstance(spec, TensorSpec):
            found[name] = spec
    return found

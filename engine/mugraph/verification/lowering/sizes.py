"""A search unit at smaller sizes, where its recorded calls can be made for them.

The program says which sizes there are. The calls say some of them as numbers (`view(4096, 32, 128)`), others not at
all: a product of matrices is one of any size. A number of a call becomes what the program's dimension of that size
becomes, if there is no doubt which one it is. That is a guess, and so is what a number becomes that is some times a
size (of what is split into equal parts), or one less (the last place along it). A unit that agrees at smaller sizes is
right at those, however its calls were made for them; one that does not agree may have been guessed wrong, and says
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from itertools import count, product
from math import gcd, prod
from types import MappingProxyType

from mugraph.ir.calls import Argument, Call, TensorInfo
from mugraph.ir.memory_order import Order, in_order, inverse
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.transforms.resizing import resize
from mugraph.verification.lowering.inputs import read_values

_LARGE = 32
"""Axes up to this size stay as they are."""
_FIRST, _STEP = 18, 2
"""Sizes that others become, each another one: an axis that is taken for another one shows."""
_SHORT = 5
"""Least length of dimensions that the program has as one axis."""


class _Unclear(Exception):
    """A number of a call may be several sizes."""


def smaller_units(unit: SearchUnit) -> Iterator[SearchUnit]:
    """With all large axes smaller, each of a size of its own; then with those alone that nothing is summed along: a
    mean's divisor is no size that could change. Then the same with one size for axes of one size, which the calls'
    numbers may not tell apart; then with numbers that are no sizes but made of them; then with dimensions shorter that
    the program does not tell apart. Raises NotDrawn."""
    program = unit.program
    held = {*program.least, *(axis for tensor in program.tensors for axis in tensor.windowed)}
    large = [axis for axis, size in program.sizes.items() if size > _LARGE and axis not in held]
    summed = {axis for op in program.ops for axis in op.over}
    choices = dict.fromkeys((tuple(large), tuple(axis for axis in large if axis not in summed)))
    for made, together in product((False, True), repeat=2):
        for axes in filter(None, choices):
            with suppress(_Unclear):
                yield _resized(unit, _smaller(program, axes, together=together), made=made)
    for axis in large:
        with suppress(_Unclear):
            yield from _shortened(unit, axis)


def shorter_units(unit: SearchUnit) -> Iterator[SearchUnit]:
    """With the sizes of ranges halved again and again, for as long as they are in them: other axes as they are, or
    smaller as well. None for a unit without a range. Raises NotDrawn."""
    program = unit.program
    if not program.least:
        return
    held = {*program.least, *(axis for tensor in program.tensors for axis in tensor.windowed)}
    large = [axis for axis, size in program.sizes.items() if size > _LARGE and axis not in held]
    others: list[dict[str, int]] = [{}, _smaller(program, large, together=False)] if large else [{}]
    last = {axis: program.sizes[axis] for axis in program.least}
    for halvings in count(1):
        shorter = _halved(program, halvings)
        if shorter == last:
            return
        last = shorter
        for other in others:
            with suppress(_Unclear):
                yield _resized(unit, {**shorter, **other}, varying=program.least.keys())


def _halved(program: TensorProgram, halvings: int) -> dict[str, int]:
    """The axes that vary, those of one size by one factor, and none shorter than it may be."""
    found: dict[str, int] = {}
    for group in program.varying_together:
        largest = gcd(*(program.sizes[axis] for axis in group))
        least = max(-(-program.least[axis] * largest // program.sizes[axis]) for axis in group)
        step = max(1, least, largest >> halvings)
        found |= {axis: program.sizes[axis] // largest * step for axis in group}
    return found


def _smaller(program: TensorProgram, axes: Collection[str], *, together: bool) -> dict[str, int]:
    """together: axes of one size stay of one size"""
    taken = set(program.sizes.values())
    free = (size for size in count(_FIRST, _STEP) if size not in taken)
    if together:
        smaller = {size: min(next(free), size) for size in dict.fromkeys(program.sizes[axis] for axis in axes)}
        return {axis: smaller[program.sizes[axis]] for axis in axes}
    return {axis: min(next(free), program.sizes[axis]) for axis in axes}


def _shortened(unit: SearchUnit, axis: str) -> Iterator[SearchUnit]:
    """Where all dimensions of a tensor are one axis of the program, as where each element is computed by itself: with
    those dimensions shorter, each of a length of its own."""
    size = unit.program.sizes[axis]
    every = {info.shape for info in read_values(unit).values() if prod(info.shape) == size and len(info.shape) > 1}
    lengths = sorted({length for shape in every for length in shape})
    shorter = {length: min(length, _SHORT + number) for number, length in enumerate(lengths)}
    sizes = {prod(shorter[length] for length in shape) for shape in every}
    if len(sizes) == 1:
        yield _resized(unit, {axis: sizes.pop()}, shorter)


def _resized(
    unit: SearchUnit,
    sizes: Sizes,
    other: Mapping[int, int] = MappingProxyType({}),
    *,
    made: bool = False,
    varying: AbstractSet[str] = frozenset(),
) -> SearchUnit:
    """other: numbers that are no size of the program, and what they become. made: with numbers that are made of sizes.
    varying: axes that have a range, and one size of it here. Raises _Unclear."""
    old = unit.program
    program = resize(old, {**old.sizes, **sizes}, varying)
    if varying:
        program = replace(program, least={}, sized={})
    numbers = _Numbers(old, program, other, made=made)
    read = read_values(unit)
    of_inputs = {value: (old.tensor(name), program.tensor(name)) for name, value in unit.inputs.items()}
    of_outputs = {value: (old.tensor(name), program.tensor(name)) for name, value in unit.outputs.items()}
    values = {
        value: _info(info, of_inputs.get(value), old.sizes, program.sizes, numbers) for value, info in read.items()
    }
    for value, tensors in of_outputs.items():
        values[value] = _laid_info(unit.values[value], unit.order_of(value), tensors, old.sizes, program.sizes, numbers)
    calls, views = (tuple(numbers.call(call) for call in some) for some in (unit.calls, unit.views))
    if made and not numbers.made:
        raise _Unclear
    return replace(
        unit,
        program=program,
        calls=calls,
        views=views,
        values=values,
        viewed={value: values[value] for value in unit.viewed if value in read},
    )


def _info(
    info: TensorInfo, tensors: tuple[Tensor, Tensor] | None, old: Sizes, new: Sizes, numbers: _Numbers
) -> TensorInfo:
    """tensors: the program's for the value, before and after"""
    if tensors is not None and tensors[0].memory_shape(old) == info.shape:
        return replace(info, shape=tensors[1].memory_shape(new), strides=tensors[1].strides)
    shape = tuple(map(numbers.size, info.shape))
    if shape == info.shape:
        return info
    return replace(info, shape=shape, strides=tuple(prod(shape[at + 1 :]) for at in range(len(shape))))


def _laid_info(
    info: TensorInfo, order: Order, tensors: tuple[Tensor, Tensor], old: Sizes, new: Sizes, numbers: _Numbers
) -> TensorInfo:
    """Of an output, whose tensor has its dimensions in this order."""
    laid = replace(info, shape=in_order(order, info.shape), strides=in_order(order, info.strides))
    found = _info(laid, tensors, old, new, numbers)
    back = inverse(order)
    return replace(info, shape=in_order(back, found.shape), strides=in_order(back, found.strides))


class _Numbers:
    """What sizes have become. made: numbers that were made of sizes, where that is allowed"""

    def __init__(self, old: TensorProgram, new: TensorProgram, other: Mapping[int, int], *, made: bool) -> None:
        self._may, self.made = made, set[int]()
        self._found: dict[int, set[int]] = {number: {one} for number, one in other.items()}
        for axis, size in old.sizes.items():
            self._found.setdefault(size, set()).add(new.sizes[axis])
        for tensor in (*old.tensors, *old.outputs.values()):
            for dim in tensor.dims:
                for first in range(len(dim)):
                    for last in range(first + 1, len(dim) + 1):
                        before, after = (prod(of.sizes[axis] for axis in dim[first:last]) for of in (old, new))
                        self._found.setdefault(before, set()).add(after)

    def size(self, number: int) -> int:
        found = self._found.get(number)
        if found is None:
            found = self._of_made(number) if self._may and number >= _LARGE else {number}
        if len(found) > 1:
            raise _Unclear
        return next(iter(found))

    def _of_made(self, number: int) -> set[int]:
        """The last place of a size, or else some times the largest size that divides it."""
        if number + 1 in self._found:
            found = {size - 1 for size in self._found[number + 1]}
        else:
            largest = max((size for size in self._found if size > _LARGE and number % size == 0), default=number)
            found = {size * (number // largest) for size in self._found.get(largest, {number})}
        if found != {number}:
            self.made.add(number)
        return found

    def call(self, call: Call) -> Call:
        kwargs: Mapping[str, Argument] = {name: self._argument(argument) for name, argument in call.kwargs.items()}
        return replace(call, args=tuple(map(self._argument, call.args)), kwargs=kwargs)

    def _argument(self, argument: Argument) -> Argument:
        if isinstance(argument, tuple):
            return tuple(map(self._argument, argument))
        if isinstance(argument, slice):
            start, stop, step = (self._argument(part) for part in (argument.start, argument.stop, argument.step))
            return slice(start, stop, step)
        if isinstance(argument, int) and not isinstance(argument, bool):
            return self.size(argument) if argument > 0 else argument
        return argument

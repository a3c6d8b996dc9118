"""Convolutions that PyTorch runs, channels last where a kernel of ours reads the result.

cuDNN's kernels for the tensor cores read and write channels last. What lies in the usual order they turn around, or are
slower with; torch.compile turns the operand of convolutions in two dimensions, and so do we: in a call before the
convolution, or in a kernel of ours where that is faster (PyTorch's copy between two orders is far from the memory's
speed). The kernel that follows reads what it gets by its strides, and writes the program's own; or, where only kernels
and such convolutions read that, writes channels last as well: the call that turns it copies nothing then. Where
something else reads the result the convolution stays as it was recorded. (The weight is turned by PyTorch, in the call:
it may change between two calls.)

Measured on an H200 (KernelBench's sizes, the operand's copy counted): 1.1 to 1.4 times faster with several taps. With
one tap, or with groups, it is slower, and in three dimensions nothing was measured. One that was seen to keep float32's
digits as it lies is not turned: channels last it would take TF32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal

from mugraph.ir.calls import Argument, Call, Ref, Symbol, TensorInfo, operands, renumbered
from mugraph.ir.region import Part, PlainCalls, Region
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.units.biases import argument, groups_of, is_pytorchs

Ranks = Collection[int]
"""Numbers of dimensions of windows, whose convolutions are turned."""
WHOLE: Final = "whole"
"""Images of the whole region channels last (whole_last.py), in place of those that single convolutions read."""
Layout = Ranks | Literal["whole"]
FASTER: Ranks = frozenset({2})
"""Where it is expected to be faster."""
POSSIBLE: Ranks = frozenset({2, 3})
_FORMATS = {2: "torch.channels_last", 3: "torch.channels_last_3d"}
TARGET = "Tensor.contiguous"


@dataclass(frozen=True, slots=True)
class Turned:
    """A convolution with its operand turned. usual: as it was without. number: of the operand channels last"""

    usual: Call
    number: int
    rank: int

    @property
    def result(self) -> int:
        return self.usual.outputs[0]

    @property
    def operand(self) -> int:
        return operands(self.usual)[0]

    def calls(self) -> tuple[Call, Call]:
        """The copy of the operand, and the convolution that reads it."""
        usual, new = self.usual, {value: value for value in operands(self.usual)} | {self.operand: self.number}
        options: dict[str, Argument] = {"memory_format": Symbol(_FORMATS[self.rank])}
        return Call(TARGET, (Ref(self.operand),), options, (self.number,), usual.range), _renumbered(usual, new)


def turnable(region: Region, ranks: Ranks = POSSIBLE, left: Collection[int] = ()) -> tuple[Turned, ...]:
    """Those of the region that may be turned, whoever reads them.

    region: with biases apart. left: results of those that are left to PyTorch, beside what has no rule
    """
    if region.dynamic is not None:
        return ()
    returned = {live.value for live in region.live_outs}
    first = 1 + max(numbers_in(region), default=-1)
    found: list[Turned] = []
    for position, call in enumerate(region.calls):
        rank = WINDOW_DIMS.get(canonical(call.target), 0)
        if (
            rank in ranks
            and rank in _FORMATS
            and not call.exact
            and _gains(call, rank, region, left)
            and returned.isdisjoint(call.outputs)
        ):
            found.append(Turned(call, first + position, rank))
    return tuple(found)


def with_channels_last(region: Region, chosen: Collection[Turned], written: Collection[int] = ()) -> Region:
    """The region with these of its convolutions channels last. Its values keep their numbers.

    written: operands that the kernels that make them write so
    """
    turned = {id(one.usual): one for one in chosen}
    if not turned:
        return region
    values, calls = dict(region.values), list[Call]()
    for call in region.calls:
        one = turned.get(id(call))
        if one is None:
            calls.append(call)
            continue
        calls += one.calls()
        for value, number in ((one.operand, one.number), (one.result, one.result)):
            values[number] = _last(values[value])
        if one.operand in written:
            values[one.operand] = _last(values[one.operand])
    copies = frozenset(one.number for one in chosen)
    return replace(region, calls=tuple(calls), values=values, turned=copies)


def read_by_calls(parts: Sequence[Part]) -> set[int]:
    """Values that something else than a kernel reads, if each search unit has one."""
    return {value for part in parts for call in plain_calls(part) for value in operands(call)}


def with_usual_layouts(
    region: Region, plain: Sequence[Sequence[Call]], kernels_read: Collection[int] = ()
) -> list[tuple[Call, ...]]:
    """Calls that PyTorch runs, step by step: convolutions channels last as they were where no kernel reads them; where
    calls read them as well as kernels, those read a copy in the usual order.

    region: as recorded. kernels_read: values
    """
    every = [call for step in plain for call in step]
    found = turned_pairs(region, every)
    restored = [(call, usual) for call, usual in found if usual.outputs[0] not in kernels_read]
    back = {id(call): usual for call, usual in restored}
    gone = {value for call, usual in restored for value in {*operands(call)} - {*operands(usual)}}
    read = {value for call in every for value in operands(call)}
    copied = [call.outputs[0] for call, _ in found if id(call) not in back and call.outputs[0] in read]
    turned = {id(call) for call, _ in found}
    least = 1 + max((*numbers_in(region), *region.values, *(n for call in every for n in call.outputs)), default=-1)
    copies = {result: least + at for at, result in enumerate(copied)}

    def calls(step: Sequence[Call]) -> Iterator[Call]:
        for call in step:
            if gone.isdisjoint(call.outputs):
                yield reading(back.get(id(call), call), copies)
                for result in copies.keys() & {*call.outputs} if id(call) in turned else ():
                    yield Call(TARGET, (Ref(result),), {}, (copies[result],), call.range)

    return [tuple(calls(step)) for step in plain]


def plain_calls_of(region: Region, part: Part) -> Sequence[Call]:
    """Calls that count as PyTorch's where it is told how convolutions lie: of plain calls all; of a search unit that
    turns an operand, which may be a kernel, its copy. None of others."""
    if isinstance(part, PlainCalls):
        return part.calls
    return part.calls if region.turned.issuperset(part.outputs.values()) else ()


def usual_and_turned(region: Region, calls: Sequence[Call]) -> tuple[list[Call], list[Call]]:
    """Calls that PyTorch runs as they would be without turning; and of them the convolutions that are turned."""
    (usual,) = with_usual_layouts(region, [calls])
    return list(usual), [call for _, call in turned_pairs(region, calls)]


def as_recorded(values: Mapping[int, TensorInfo], turned: Sequence[Call]) -> tuple[dict[int, TensorInfo], set[int]]:
    """What was recorded of the operands of convolutions that are turned, in place of what kernels write; and those
    operands that kernels write channels last. turned: as `usual_and_turned` gives them"""
    found = {operands(call)[0]: values[operands(call)[0]] for call in turned}
    written = {value for value, info in found.items() if not _is_usual(info)}
    return {**values, **{value: in_usual_order(found[value]) for value in written}}, written


def turned_pairs(region: Region, calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Convolutions channels last, each with what it was without. What the user's own calls turn has a number of the
    region."""
    recorded = set(numbers_in(region))
    copies = {
        call.outputs[0]: operands(call)[0]
        for call in calls
        if call.target == TARGET and "memory_format" in call.kwargs and recorded.isdisjoint(call.outputs)
    }
    found: list[tuple[Call, Call]] = []
    for call in calls:
        read = operands(call)
        if copies.keys() & {*read}:
            found.append((call, _renumbered(call, {value: copies.get(value, value) for value in read})))
    return found


def reading(call: Call, usual: Mapping[int, int]) -> Call:
    read = operands(call)
    return _renumbered(call, {value: usual.get(value, value) for value in read}) if usual.keys() & read else call


def _renumbered(call: Call, new: Mapping[int, int]) -> Call:
    args = tuple(renumbered(one, new) for one in call.args)
    return replace(call, args=args, kwargs={name: renumbered(one, new) for name, one in call.kwargs.items()})


def numbers_in(region: Region) -> Iterator[int]:
    for call in region.calls:
        yield from (*operands(call), *call.outputs)
    for live in region.live_ins:
        yield live.value


def plain_calls(part: Part) -> Sequence[Call]:
    """Calls of it that PyTorch makes."""
    return part.calls if isinstance(part, PlainCalls) else part.views


def _gains(call: Call, rank: int, region: Region, left: Collection[int]) -> bool:
    """Several taps, no groups, images in the usual order that are more than channels or more than places; and no rule
    that makes it part of a search unit."""
    x, weight, values = argument(call, 0, "input"), argument(call, 1, "weight"), region.values
    if not isinstance(x, Ref) or not isinstance(weight, Ref) or len(call.outputs) != 1:
        return False
    if any(value not in values for value in (*operands(call), *call.outputs)) or operands(call)[0] != x.value:
        return False
    images = source, result = values[x.value], values[call.outputs[0]]
    if any(len(info.shape) != rank + 2 for info in images) or not _is_usual(source):
        return False
    if not _is_usual(in_usual_order(result) if result == _last(result) else result):
        return False
    taps = prod(values[weight.value].shape[2:])
    floats = {info.dtype for info in images} <= {"f16", "bf16", "f32"}
    return floats and taps > 1 and groups_of(call) == 1 and is_pytorchs(call, region, left)


def _is_usual(info: TensorInfo) -> bool:
    """Row by row, and not channels last as well."""
    return info.strides == _usual(info.shape) and info.shape[1] > 1 and prod(info.shape[2:]) > 1


def _usual(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def in_usual_order(info: TensorInfo) -> TensorInfo:
    return replace(info, strides=_usual(info.shape))


def _last(info: TensorInfo) -> TensorInfo:
    _, channels, *places = info.shape
    steps = [channels * prod(places[dim + 1 :]) for dim in range(len(places))]
    return replace(info, strides=(channels * prod(places), 1, *steps), triangle=None)

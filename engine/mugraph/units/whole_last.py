"""A whole region's images channels last: between its convolutions nothing is turned.

PyTorch computes a convolution channels last where its operand lies so, and leaves the result so; poolings, norms,
concatenations and element-wise calls leave what they are given in its order. So only what enters such a chain is
turned, and what leaves the region; a call that needs the usual order (a `view` of an image as rows) reads a copy. The
calls are run on tensors without memory (`units/lying.py`): the strides that come out are those of the values, whoever
makes them, so a search unit may have a kernel or not. A value that lies otherwise than recorded has a number of its
own.

Inductor decides for a whole graph as well (`decide_layout_opt`). PyTorch turns the weight of more than one tap in the
call, as it does there: it may change between two calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod

from mugraph.ir.calls import Argument, Call, Ref, Symbol, TensorInfo, are_known, is_inplace, operands, renumbered
from mugraph.ir.region import Region, Relaid
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.units.layouts import TARGET, numbers_in
from mugraph.units.lying import Lying, Unknown, in_last_order, in_usual_order, is_image, lies_last, same_places
from mugraph.units.region_graph import RegionGraph, is_contiguous

LAST = Symbol("torch.channels_last")
_WINDOWS = 2
_LEAST = 2
"""Convolutions of a region. One alone is turned as it is (layouts.py)."""
_FLOATS = frozenset({"f16", "bf16", "f32"})
_FIXED = frozenset({"Tensor.as_strided", "torch.as_strided", "Tensor.set_", "Tensor.resize_"})
"""Calls that mean places in memory."""


def channels_last(region: Region) -> Region | None:
    """The region with how its calls are made so. None where there is nothing to gain, or where it is not known that
    the same is computed."""
    windowed = [call for call in region.calls if is_windowed(call)]
    if region.dynamic is not None or len(windowed) < _LEAST or RegionGraph(region).barrier:
        return None
    if not are_known(region.calls, region.values):
        return None
    if any(canonical(call.target) in _FIXED or not call.outputs for call in region.calls):
        return None
    try:
        return _Turning(region).region()
    except Unknown:
        return None


def is_windowed(call: Call) -> bool:
    """Of images."""
    return WINDOW_DIMS.get(canonical(call.target)) == _WINDOWS and len(call.outputs) == 1


def as_the_code_has(region: Region, calls: Collection[Call]) -> list[Call]:
    """Calls as they are made, without the copies between orders, and with the numbers that were recorded."""
    if region.relaid is None:
        return list(calls)
    of = region.relaid.of
    found: list[Call] = []
    for call in calls:
        read = {value: of.get(value, value) for value in operands(call)}
        outputs = tuple(of.get(value, value) for value in call.outputs)
        if not _is_between(call, of):
            found.append(replace(_renumbered(call, read), outputs=outputs))
    return found


def copies(region: Region, calls: Collection[Call]) -> list[Call]:
    """Those of the calls that turn a value and were not recorded."""
    of = region.relaid.of if region.relaid is not None else dict[int, int]()
    return [call for call in calls if call.target == TARGET and _is_between(call, of)]


def _is_between(call: Call, of: Mapping[int, int]) -> bool:
    read = operands(call)[0] if len(call.outputs) == 1 == len(operands(call)) else None
    if read is None:
        return False
    (made,) = call.outputs
    return made != read and of.get(made, made) == of.get(read, read)


class _Turning:
    """The calls of one region, from the first to the last."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._wanted = _wanted(region)
        self._least = 1 + max((*numbers_in(region), *region.values), default=-1)
        self._returned = {live.value for live in region.live_outs}
        self._values: dict[int, TensorInfo] = {}
        """Of numbers that are not the region's."""
        self._of: dict[int, int] = {}
        self._forms: dict[int, list[int]] = {live.value: [live.value] for live in region.live_ins}
        """Numbers under which a value is there, by the recorded one; that in which it was made first."""
        self._calls: list[Call] = []
        self._lying = Lying({live.value: region.values[live.value] for live in region.live_ins})

    def region(self) -> Region | None:
        for call in self._region.calls:
            self._make(call)
        if not self._of:
            return None
        names = {number: name for number, of in self._of.items() if (name := self._region.names.get(of))}
        return replace(
            self._region,
            values={**self._region.values, **self._values},
            names={**self._region.names, **names},
            relaid=Relaid(tuple(self._calls), self._of),
        )

    def _make(self, call: Call) -> None:
        if {*call.outputs} <= {*operands(call)} and not is_inplace(call):
            return  # a copy that was none: of what is there in several orders, each reader has its own
        read = {value: self._read(call, value) for value in operands(call)}
        recorded = [self._recorded(value) for value in call.outputs]
        try:
            as_recorded = not is_windowed(call) and all(form == value for value, form in read.items())
            made = recorded if as_recorded else self._lying.after(_renumbered(call, read), recorded)
        except Unknown:  # a view of what lies otherwise
            usual = {value: self._usual(call, value) for value in operands(call)}
            if usual == read:
                raise
            read = usual
            made = self._lying.after(_renumbered(call, read), recorded)
        call = _renumbered(call, read)
        numbers = [self._number(value, info, read) for value, info in zip(call.outputs, made, strict=True)]
        self._add(replace(call, outputs=tuple(numbers)), made)
        for value, number in zip(call.outputs, numbers, strict=True):
            self._forms[value] = [number]
            if value in self._returned and number != value:
                self._leave(call, value, number)

    def _read(self, call: Call, value: int) -> int:
        """The number of an operand: channels last, where a convolution reads what the call makes of it, or the call is
        one."""
        forms = self._forms_of(value)
        last = next((form for form in forms if lies_last(self._lying.info(form))), None)
        if last is not None:
            return last
        info = self._lying.info(forms[0])
        reads_images = is_windowed(call) and operands(call)[0] == value
        makes_them = not is_windowed(call) and _is_of_images(call, self._region) and self._makes_wanted(call)
        if not _is_image(info) or not (reads_images or (makes_them and value in self._wanted)) or is_inplace(call):
            return forms[0]
        return self._copied(call, value, forms[0], {"memory_format": LAST})

    def _usual(self, call: Call, value: int) -> int:
        forms = self._forms_of(value)
        if is_inplace(call) or not lies_last(self._lying.info(forms[0])):
            return forms[0]
        usual = next((form for form in forms if is_contiguous(self._lying.info(form))), None)
        return usual if usual is not None else self._copied(call, value, forms[0], {})

    def _copied(self, call: Call, value: int, form: int, options: Mapping[str, Argument]) -> int:
        copy = Call(TARGET, (Ref(form),), options, (self._new(),), call.range)
        turn = in_last_order if options else in_usual_order
        info = turn(self._lying.info(form))
        self._add(copy, [info])
        self._know(copy.outputs[0], value, info)
        self._forms[value] = [*self._forms_of(value), copy.outputs[0]]
        return copy.outputs[0]

    def _leave(self, call: Call, value: int, number: int) -> None:
        """What the region's caller gets has the strides that were recorded."""
        recorded = self._region.values[value]
        if not is_contiguous(recorded):
            raise Unknown("it leaves the region in another order than the usual one")
        last = Call(TARGET, (Ref(number),), {}, (value,), call.range)
        if same_places(self._lying.info(number), recorded):  # only the stride of a dimension of size 1 is another
            row = replace(recorded, shape=(prod(recorded.shape),), strides=(1,))
            flat = Call("Tensor.reshape", (Ref(number), -1), {}, (self._new(),), call.range)
            self._add(flat, [row])
            self._know(flat.outputs[0], value, row)
            last = Call("Tensor.view", (Ref(flat.outputs[0]), *recorded.shape), {}, (value,), call.range)
        self._add(last, [in_usual_order(recorded)])
        self._forms[value] = [number, value]

    def _number(self, value: int, info: TensorInfo, read: Mapping[int, int]) -> int:
        """Of a result: its own, where it lies as recorded."""
        recorded = self._recorded(value)
        if (recorded.shape, recorded.dtype) != (info.shape, info.dtype):
            raise Unknown("another result than what was recorded")
        if value in read:
            return read[value]
        is_same = same_places(info, recorded) if value not in self._returned else info.strides == recorded.strides
        if is_same:
            return value
        number = self._new()
        self._know(number, value, info)
        return number

    def _recorded(self, value: int) -> TensorInfo:
        if value not in self._region.values:
            raise Unknown(f"nothing is known of value {value}")
        return self._region.values[value]

    def _add(self, call: Call, made: list[TensorInfo]) -> None:
        self._calls.append(call)
        self._lying.know(call.outputs, made)

    def _know(self, number: int, value: int, info: TensorInfo) -> None:
        self._of[number] = value
        self._values[number] = replace(info, device=self._region.values[value].device)

    def _new(self) -> int:
        return self._least + len(self._of)

    def _forms_of(self, value: int) -> list[int]:
        if value not in self._forms:
            raise Unknown(f"value {value} is read before it is made")
        return self._forms[value]

    def _makes_wanted(self, call: Call) -> bool:
        return any(value in self._wanted for value in call.outputs)


def _wanted(region: Region) -> set[int]:
    """Images that convolutions read, and those that they are made of without becoming smaller."""
    wanted: set[int] = set()
    for call in reversed(region.calls):
        if is_windowed(call):
            wanted.add(operands(call)[0])
        elif _is_of_images(call, region):
            made = [region.values[value] for value in call.outputs if value in wanted]
            for value in operands(call) if made else ():
                info = region.values[value]
                if _is_image(info) and prod(info.shape) <= prod(made[0].shape):
                    wanted.add(value)
    return wanted


def _is_of_images(call: Call, region: Region) -> bool:
    """Does it make images of images, and is no view?"""
    entry = entry_for(call.target)
    if entry is not None and entry.shape_only:
        return False
    return all(value in region.values and _is_image(region.values[value]) for value in call.outputs)


def _is_image(info: TensorInfo) -> bool:
    return info.dtype in _FLOATS and is_image(info)


def _renumbered(call: Call, new: Mapping[int, int]) -> Call:
    args = tuple(renumbered(one, new) for one in call.args)
    return replace(call, args=args, kwargs={name: renumbered(one, new) for name, one in call.kwargs.items()})

"""Traces as JSON: how the child process that runs the user's code hands over what it saw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from mugraph.ir.ran import Ran
from mugraph.ir.ranges import DynamicSize, Product, SizeRange
from mugraph.ir.region import Argument, Call, Named, Range, Ref, Region, Status, Symbol, TensorInfo, Trace


class _Value(msgspec.Struct, omit_defaults=True):
    """An Argument: exactly one field says what it is; none of them: None."""

    literal: bool | int | float | str | None = None
    real: float | None = None  # JSON does not keep 1.0 and 1 apart
    special: Literal["inf", "-inf", "nan"] | None = None
    ref: int | None = None
    symbol: str | None = None
    items: list[_Value] | None = None
    slice: tuple[_Value, _Value, _Value] | None = None


class _Call(msgspec.Struct):
    target: str
    args: list[_Value]
    kwargs: dict[str, _Value]
    outputs: tuple[int, ...]
    range: Range
    tf32: bool = False


class _Dynamic(msgspec.Struct):
    range: SizeRange
    shapes: dict[int, tuple[Product, ...]]
    strides: dict[int, tuple[Product, ...]]
    calls: list[_Call]
    others: tuple[SizeRange, ...] = ()
    numbers: dict[str, Product] = {}
    arguments: dict[str, Product] = {}
    recorded: dict[str, str] = {}


class _Region(msgspec.Struct):
    function: str
    range: Range
    unit: Literal["statements", "expression"]
    text: str
    live_ins: tuple[Named, ...]
    live_outs: tuple[Named, ...]
    calls: list[_Call]
    values: dict[int, TensorInfo]
    guards: tuple[str, ...]
    function_args: tuple[str, ...]
    names: dict[int, str]
    status: Status | None
    reason: str | None
    ran: dict[str, Ran]
    outside: dict[str, str]
    called: tuple[str, ...]
    left_none: tuple[str, ...] = ()
    stored: frozenset[int] = frozenset()
    dynamic: _Dynamic | None = None
    alike_for: dict[str, tuple[int, int]] = {}
    times: int = 1


class _Trace(msgspec.Struct):
    path: str
    regions: list[_Region]
    errors: tuple[str, ...]
    operators: int
    barriers: dict[str, int]
    dependencies: dict[str, str]
    notices: tuple[str, ...] = ()
    shapes_from: tuple[str, ...] = ()
    elsewhere: dict[str, tuple[str, ...]] = {}


def _encode_value(value: Argument) -> _Value:
    if isinstance(value, Ref):
        return _Value(ref=value.value)
    if isinstance(value, Symbol):
        return _Value(symbol=value.name)
    if isinstance(value, tuple):
        return _Value(items=[_encode_value(item) for item in value])
    if isinstance(value, slice):
        return _Value(slice=(_encode_value(value.start), _encode_value(value.stop), _encode_value(value.step)))
    if isinstance(value, float):
        if math.isfinite(value):
            return _Value(real=value)
        return _Value(special="nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    return _Value(literal=value)


def _decode_value(value: _Value) -> Argument:
    if value.ref is not None:
        return Ref(value.ref)
    if value.symbol is not None:
        return Symbol(value.symbol)
    if value.items is not None:
        return tuple(_decode_value(item) for item in value.items)
    if value.slice is not None:
        start, stop, step = value.slice
        return slice(_decode_value(start), _decode_value(stop), _decode_value(step))
    if value.special is not None:
        return float(value.special)
    if value.real is not None:
        return float(value.real)
    return value.literal


def _encode_call(call: Call) -> _Call:
    args = [_encode_value(arg) for arg in call.args]
    kwargs = {name: _encode_value(arg) for name, arg in call.kwargs.items()}
    return _Call(call.target, args, kwargs, call.outputs, call.range, call.tf32)


def _decode_call(call: _Call) -> Call:
    args = tuple(_decode_value(arg) for arg in call.args)
    kwargs: Mapping[str, Argument] = {name: _decode_value(arg) for name, arg in call.kwargs.items()}
    return Call(call.target, args, kwargs, call.outputs, call.range, call.tf32)


def _encode_dynamic(size: DynamicSize | None) -> _Dynamic | None:
    if size is None:
        return None
    calls = [_encode_call(call) for call in size.calls]
    return _Dynamic(
        size.range,
        dict(size.shapes),
        dict(size.strides),
        calls,
        size.others,
        dict(size.numbers),
        dict(size.arguments),
        dict(size.recorded),
    )


def _decode_dynamic(size: _Dynamic | None) -> DynamicSize | None:
    if size is None:
        return None
    calls = tuple(_decode_call(call) for call in size.calls)
    return DynamicSize(
        size.range, size.shapes, size.strides, calls, size.others, size.numbers, size.arguments, size.recorded
    )


def trace_to_json(trace: Trace) -> bytes:
    regions = [
        _Region(
            function=region.function,
            range=region.range,
            unit=region.unit,
            text=region.text,
            live_ins=region.live_ins,
            live_outs=region.live_outs,
            calls=[_encode_call(call) for call in region.calls],
            values=dict(region.values),
            guards=region.guards,
            ran=dict(region.ran),
            outside=dict(region.outside),
            called=region.called,
            left_none=region.left_none,
            stored=region.stored,
            function_args=region.function_args,
            names=dict(region.names),
            status=region.status,
            reason=region.reason,
            dynamic=_encode_dynamic(region.dynamic),
            alike_for=dict(region.alike_for),
            times=region.times,
        )
        for region in trace.regions
    ]
    counts, dependencies = dict(trace.barriers), dict(trace.dependencies)
    return msgspec.json.encode(
        _Trace(
            trace.path,
            regions,
            trace.errors,
            trace.operators,
            counts,
            dependencies,
            trace.notices,
            trace.shapes_from,
            dict(trace.elsewhere),
        )
    )


def trace_from_json(data: bytes) -> Trace:
    """Raises msgspec.DecodeError (or its ValidationError) if the bytes are no trace."""
    wire = msgspec.json.decode(data, type=_Trace)
    regions = tuple(
        Region(
            function=region.function,
            range=region.range,
            unit=region.unit,
            text=region.text,
            live_ins=region.live_ins,
            live_outs=region.live_outs,
            calls=tuple(_decode_call(call) for call in region.calls),
            values=region.values,
            guards=region.guards,
            ran=dict(region.ran),
            outside=dict(region.outside),
            called=region.called,
            left_none=region.left_none,
            stored=region.stored,
            function_args=region.function_args,
            names=dict(region.names),
            status=region.status,
            reason=region.reason,
            dynamic=_decode_dynamic(region.dynamic),
            alike_for=region.alike_for,
            times=region.times,
        )
        for region in wire.regions
    )
    return Trace(
        wire.path,
        regions,
        wire.errors,
        wire.operators,
        wire.barriers,
        wire.dependencies,
        wire.notices,
        wire.shapes_from,
        wire.elsewhere,
    )

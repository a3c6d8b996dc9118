"""Recorded calls -> a tensor program."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.ir.memory_order import Order, in_order, memory_order
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import DynamicSize, Point, largest_point
from mugraph.ir.region import Call, Named, Ref, TensorInfo
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable
from mugraph.ops.algebra.registry import entry_for
from mugraph.ops.finishing.program import Output, finish
from mugraph.ops.views import View

__all__ = ["Duplicated", "Lowered", "NotLowerable", "lower"]


@dataclass(frozen=True)
class Lowered:
    """
    inputs:  name of an input tensor -> value number; several names may share one
    outputs: name of an output tensor -> value number
    views:   name of an input tensor that is only a part of its value -> which
    laid:    as of a SearchUnit
    origins: name of an operator -> positions of the calls it is part of
    """

    program: TensorProgram
    inputs: Mapping[str, int] = field(default_factory=dict[str, int])
    outputs: Mapping[str, int] = field(default_factory=dict[str, int])
    origins: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    views: Mapping[str, View] = field(default_factory=dict[str, View])
    laid: Mapping[int, Order] = field(default_factory=dict[int, Order])


def lower(
    calls: Sequence[Call],
    values: Mapping[int, TensorInfo],
    live_ins: Sequence[Named],
    outputs: Sequence[int],
    name: str,
    names: Mapping[int, str] | None = None,
    bound: Collection[int] = (),
    *,
    as_they_lie: bool = False,
    copies: bool = False,
    every_mask: bool = False,
    dynamic: DynamicSize | None = None,
    point: Point | None = None,
) -> Lowered:
    """The tensor program that computes `outputs` from the values that no call produces.

    live_ins: expressions by which the user's code reads some of those values
    names:    names of values; a value without one is named by what the user's code binds it to
    bound:    those that the user's code has named itself; their names count most
    as_they_lie: the dimensions of outputs in the order in which they lie in memory, so that a kernel that writes them
              row by row leaves them as the user's code does
    copies:   as of `finish`
    every_mask: a mask stays one where it is nothing but ones or zeros, as it is at other sizes
    dynamic:  what of the region varies with its sizes. point: the sizes here, if not the largest

    Raises NotLowerable with one sentence saying why, and Duplicated when a value should be loaded instead of computed.
    """
    names = names or {}
    builder = Builder(calls, values, names, frozenset(bound), entry_for)
    builder.every_mask = every_mask
    if dynamic is not None:
        builder.varying, builder.general = dynamic.shapes, {call.outputs: call for call in dynamic.calls}
        builder.point = largest_point(dynamic.ranges) if point is None else point
    wanted, laid = list[Output](), dict[int, Order]()
    for value in outputs:
        shape = values[value].shape
        letters = ("", "n", "mn", "bmn", "bcmn", "bcdmn")[len(shape)] if len(shape) < 6 else "n" * len(shape)
        dims = tuple(builder.fresh(size, letter, 1) for size, letter in zip(shape, letters, strict=True))
        node = builder.pieces.written(builder.at(Ref(value), dims))
        order = memory_order(values[value])
        if as_they_lie and order != tuple(range(len(shape))):
            laid[value], dims = order, in_order(order, dims)
        wanted.append(Output(value, names.get(value, "out"), dims, node))
    sources = {**names, **{live.value: live.expression for live in live_ins}}
    found = finish(builder, wanted, sources, name, copies=copies)
    # Two outputs never share a value (finish refuses), so tensors and wanted outputs come in one order.
    tensors = [tensor.name for tensor in found.program.outputs.values()]
    tied = dict(zip(tensors, outputs, strict=True))
    return Lowered(found.program, found.inputs, tied, found.origins, found.views, laid)

"""Products of float8 matrices with scales of both: one number of each, or one of each row and of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mugraph.triton_text.calls.call import Box, Call, Reading, matrices
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tensors import HostTensor
from mugraph.triton_text.tiles import Kind

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_MULTIPLE = 16
"""Of elements: what the depth and the columns are on a GPU."""


def _scaled_product(call: Call, box: Box) -> Real:
    left, right, *scales = call.operands
    rows, columns = box
    one = call.part(left, (rows, slice(0, left.shape[1])))
    two = call.part(right, (slice(0, right.shape[0]), columns))
    found = call.reals.dot(*matrices(one, two))
    rank = found.p.ndim
    for scale, own in zip(scales[:2], ((rows, slice(0, 1)), (slice(0, 1), columns)), strict=True):
        is_one = prod(scale.shape) == 1
        part = call.part(scale, (slice(0, 1),) * len(scale.shape) if is_one else own)
        shape = (1, 1) if is_one else part.p.shape
        found = call.reals.mul(found, part.each(lambda x, to=shape: x.reshape((1,) * (rank - 2) + to)))
    for bias in scales[2:]:
        added = call.part(bias, (columns,))
        found = call.reals.add(found, added.each(lambda x: x.reshape((1,) * (rank - 1) + x.shape)))
    return found


def _shape(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if len(operands) < 4 or arguments.get("scale_result") is not None:
        raise Unreadable("torch._scaled_mm without scales, or with one of its result, is not read")
    left, right, one, other, *bias = operands
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        raise Wrong("type", f"a product of shapes {list(left.shape)} and {list(right.shape)}")
    (rows, depth), columns = left.shape, right.shape[1]
    if depth % _MULTIPLE or columns % _MULTIPLE:
        raise Wrong("type", f"torch._scaled_mm of {depth} summed elements and {columns} columns")
    if (left.strides[1], right.strides[0]) != (1, 1):
        raise Wrong("type", "torch._scaled_mm of rows, or of columns, whose elements do not lie side by side")
    is_one = prod(one.shape) == prod(other.shape) == 1
    if not is_one and (one.shape, other.shape) != ((rows, 1), (1, columns)):
        raise Wrong("type", f"torch._scaled_mm with scales of shapes {list(one.shape)} and {list(other.shape)}")
    if any(one.shape != (columns,) for one in bias):
        raise Wrong("type", f"torch._scaled_mm of {columns} columns with a bias of another shape")
    return rows, columns


def _kind(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> str:
    left, right, one, other, *bias = (operand.memory.kind for operand in operands)
    if left not in _FLOAT8 or right not in _FLOAT8 or {one, other} != {"float32"}:
        raise Wrong("type", f"torch._scaled_mm of {left} and {right} with scales of {one} and {other}")
    wanted = arguments.get("out_dtype")
    found = wanted.name if isinstance(wanted, Kind) else left
    if any(kind != found for kind in bias):
        raise Wrong("type", f"torch._scaled_mm with a bias of {bias[0]} and a result of {found}")
    return found


READINGS: Mapping[str, Reading] = {
    "torch._scaled_mm": Reading(
        ("self", "mat2", "scale_a", "scale_b", "bias", "scale_result", "out_dtype", "use_fast_accum"),
        5,
        _shape,
        _scaled_product,
        kind=_kind,
    )
}

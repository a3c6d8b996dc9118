"""Products of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mugraph.triton_text.calls.call import Box, Call, Reading, matrices, part_of
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tensors import HostTensor


def _product(call: Call, box: Box) -> Real:
    left, right = call.operands[:2]
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise Unreadable(f"{call.function} of vectors is not read")
    (*outer, rows, columns) = box
    one = call.part(left, (*part_of(left, outer), rows, slice(0, left.shape[-1])))
    two = call.part(right, (*part_of(right, outer), slice(0, right.shape[-2]), columns))
    return call.reals.dot(*matrices(one, two))


def _linear(call: Call, box: Box) -> Real:
    x, weight, *rest = call.operands
    (*outer, columns) = box
    rows = call.part(x, (*outer, slice(0, x.shape[-1])))
    matrix = call.part(weight, (columns, slice(0, weight.shape[1]))).each(lambda array: array.T)
    flat = rows.each(lambda array: array.reshape(-1, array.shape[-1]))
    found = call.reals.dot(*matrices(flat, matrix))
    found = found.each(lambda array: array.reshape(*rows.p.shape[:-1], array.shape[-1]))
    if rest:
        bias = call.part(rest[0], (columns,))
        found = call.reals.add(found, bias.each(lambda x: x.reshape((1,) * (found.p.ndim - 1) + x.shape)))
    return found


def _added(call: Call, box: Box) -> Real:
    """A product, and a tensor that is repeated along dimensions that it lacks."""
    bias, left, right = call.operands
    *outer, rows, columns = box
    one = call.part(left, (*outer, rows, slice(0, left.shape[-1])))
    two = call.part(right, (*outer, slice(0, right.shape[-2]), columns))
    part = [slice(0, 1) if n == 1 else at for n, at in zip(bias.shape, box[-len(bias.shape) :], strict=True)]
    found = call.reals.dot(*matrices(one, two))
    added = call.part(bias, part).each(lambda x: x.reshape((1,) * (found.p.ndim - x.ndim) + x.shape))
    return call.reals.add(_times(call, found, "alpha"), _times(call, added, "beta"))


def _times(call: Call, value: Real, name: str) -> Real:
    factor = float(call.arguments.get(name, 1.0))
    return value if factor == 1.0 else call.reals.mul(value, call.reals.constant(factor, value.p.ndim - 1))


def _added_relu(call: Call, box: Box) -> Real:
    return call.reals.unary("relu", _added(call, box))


def _shape_of_relu(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if arguments.get("use_gelu"):
        raise Unreadable("a product with GELU is not read")
    return _shape_of_sum(operands, {name: one for name, one in arguments.items() if name != "use_gelu"})


def _rows(left: HostTensor, columns: int, right: HostTensor | None = None) -> tuple[int, ...]:
    outer = np.broadcast_shapes(left.shape[:-2], right.shape[:-2]) if right is not None else left.shape[:-2]
    return (*outer, left.shape[-2], columns)


def _shape_of_product(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    left, right = operands[-2:]
    if left.shape[-1] != right.shape[-2]:
        raise Wrong("type", f"a product of shapes {list(left.shape)} and {list(right.shape)}")
    return _rows(left, right.shape[-1], right)


def _shape_of_sum(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if not arguments.keys() <= {"alpha", "beta"} or not all(isinstance(one, int | float) for one in arguments.values()):
        raise Unreadable("a product that is added to a tensor has other arguments than factors of both")
    if 0 in arguments.values():
        raise Unreadable("a product that is added to a tensor with a factor of 0 is not read")
    bias, left, right = operands
    rank = len(left.shape)
    if len(right.shape) != rank or left.shape[:-2] != right.shape[:-2] or not 0 < len(bias.shape) <= rank:
        raise Wrong("type", f"a product of shapes {list(left.shape)} and {list(right.shape)} is added")
    shape = _shape_of_product(operands, arguments)
    if any(n not in (1, size) for n, size in zip(bias.shape, shape[-len(bias.shape) :], strict=True)):
        raise Wrong("type", f"a tensor of shape {list(bias.shape)} is added to a product of shape {list(shape)}")
    return shape


def _shape_of_linear(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    return (*operands[0].shape[:-1], operands[1].shape[0])


_MM = Reading(("input", "other"), 2, _shape_of_product, _product)
READINGS: Mapping[str, Reading] = {
    "torch.mm": _MM,
    "torch.bmm": _MM,
    "torch.matmul": _MM,
    "torch.addmm": Reading(("bias", "input", "other"), 3, _shape_of_sum, _added),
    "torch._addmm_activation": Reading(("bias", "input", "other"), 3, _shape_of_relu, _added_relu),
    "torch.baddbmm": Reading(("bias", "input", "other"), 3, _shape_of_sum, _added),
    "torch.nn.functional.linear": Reading(("input", "weight", "bias"), 3, _shape_of_linear, _linear),
}

"""Convolutions, and transposed ones.

Of y = conv(x, w), y[n, o, p] = sum over c, r of w[o, c, r] * x[n, c, p * stride + r * dilation - padding]; of a
transposed one, x[n, c, i] is added with w[c, o, r] at i * stride + r * dilation - padding. The channels of a group are
those of the operand and of the result with its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.calls.call import Box, Call, Reading
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.source import is_sequence, listed
from mugraph.triton_text.tensors import HostTensor

_STEPS = (("stride", 1), ("padding", 0), ("dilation", 1))
_Places = tuple[NDArray[np.int64], NDArray[np.bool_]]
_Steps = tuple[int, int, int]


def _places(along: NDArray[np.int64], tap: int, steps: _Steps) -> _Places:
    """What an output's places read with a tap, and whether they read anything."""
    stride, pad, dilation = steps
    place = along * stride + tap * dilation - pad
    return place, np.ones(place.shape, np.bool_)


def _places_of_transposed(along: NDArray[np.int64], tap: int, steps: _Steps) -> _Places:
    stride, pad, dilation = steps
    place, left = np.divmod(along + pad - tap * dilation, stride)
    return place, left == 0


def _convolution(call: Call, box: Box) -> Real:
    def matrix(channels: slice, group: int) -> Real:
        weight = call.operands[1]
        part = call.part(weight, (channels, *(slice(0, n) for n in weight.shape[1:])))
        return part.each(lambda a: a.reshape(*a.shape[:2], -1).transpose(2, 1, 0))

    return _products(call, box, call.operands[1].shape[0], _places, matrix)


def _transposed(call: Call, box: Box) -> Real:
    weight = call.operands[1]
    groups = _groups(call.arguments)
    depth, width = weight.shape[0] // groups, weight.shape[1]

    def matrix(channels: slice, group: int) -> Real:
        first = group * width
        columns = slice(channels.start - first, channels.stop - first)
        rows = slice(group * depth, (group + 1) * depth)
        part = call.part(weight, (rows, columns, *(slice(0, n) for n in weight.shape[2:])))
        return part.each(lambda a: a.reshape(*a.shape[:2], -1).transpose(2, 0, 1))

    return _products(call, box, width * groups, _places_of_transposed, matrix)


def _products(
    call: Call,
    box: Box,
    out: int,
    places: Callable[[NDArray[np.int64], int, _Steps], _Places],
    matrix: Callable[[slice, int], Real],
) -> Real:
    """out: channels. matrix: of some of them, which are of one group, the weights: [taps, channels of a group, they]"""
    groups = _groups(call.arguments)
    rank = len(call.operands[1].shape) - 2
    _, channels, *_ = box if len(box) == rank + 2 else (slice(0, 1), *box)
    width = out // groups
    found: list[Real] = []
    for group in range(channels.start // width, (channels.stop - 1) // width + 1):
        part = slice(max(channels.start, group * width), min(channels.stop, (group + 1) * width))
        weights = matrix(part, group).each(lambda a: a.reshape(-1, a.shape[-1])[None])
        columns, shape = _columns(call, box, group, places)
        product = call.reals.dot(columns, weights)
        found.append(product.each(lambda a, s=shape: np.moveaxis(a, 2, 1).reshape(s[0], a.shape[2], *s[1:])))
    joined = _joined(found).each(lambda a: a.reshape([part.stop - part.start for part in box]))
    for bias in call.operands[2:]:
        added = call.part(bias, (channels,))
        joined = call.reals.add(joined, added.each(lambda a: a.reshape(-1, *(1,) * rank)))
    return joined


def _columns(
    call: Call, box: Box, group: int, places: Callable[[NDArray[np.int64], int, _Steps], _Places]
) -> tuple[Real, tuple[int, ...]]:
    """What a box's places read of a group's channels: [batch, places, taps * channels]; and the shape of batch and
    places."""
    x, weight = call.operands[:2]
    reals = call.reals
    rank = len(weight.shape) - 2
    has_batch = len(x.shape) == rank + 2
    batch, _, *positions = box if len(box) == rank + 2 else (slice(0, 1), *box)
    steps = list(zip(*(_each(call.arguments.get(name), rank, other) for name, other in _STEPS), strict=True))
    depth = x.shape[1 if has_batch else 0] // _groups(call.arguments)
    columns: list[Real] = []
    for tap in np.ndindex(*weight.shape[2:]):
        index: list[NDArray[np.int64]] = []
        inside: list[NDArray[np.bool_]] = []
        for d in range(rank):
            along: NDArray[np.int64] = np.arange(positions[d].start, positions[d].stop, dtype=np.int64)
            place, good = places(along, tap[d], steps[d])
            good = good & (place >= 0) & (place < x.shape[len(x.shape) - rank + d])
            index.append(np.where(good, place, 0))
            inside.append(good)
        own: list[Any] = [np.arange(x.shape[0])[batch]] if has_batch else []
        own += [np.arange(group * depth, (group + 1) * depth), *index]
        read = x.places(own)
        found = call.world.read(x.memory, read.reshape(-1), call.number).each(
            lambda array, at=read: array.reshape(at.shape)
        )
        mask = np.ones((1,) * read.ndim, np.bool_)
        for d, good in enumerate(inside):
            at = read.ndim - rank + d
            mask = mask & good.reshape([-1 if i == at else 1 for i in range(read.ndim)])
        columns.append(reals.chosen(mask, found, reals.constant(0.0, read.ndim - 1)))
    each = columns[0].p.shape[-rank - 1 :]
    joined = _joined([column.each(lambda a: a.reshape(-1, *each)) for column in columns])
    count = joined.p.shape[0]
    flat = joined.each(lambda a: np.moveaxis(a.reshape(count, a.shape[1], -1), 1, 2))
    return flat, (count, *each[1:])


def _joined(parts: Sequence[Real]) -> Real:
    """Along the channels."""
    first = parts[0].q
    q = None if first is None else np.concatenate([part.q for part in parts if part.q is not None], 1)
    return Real(np.concatenate([part.p for part in parts], 1), q)


def _groups(arguments: Mapping[str, Any]) -> int:
    return int(arguments.get("groups") or 1)


def _each(value: Any, rank: int, default: int) -> tuple[int, ...]:
    value = default if value is None else value
    found = listed(value) if is_sequence(value) else (value,) * rank
    if not all(isinstance(n, int) for n in found):
        raise Unreadable("a convolution with padding by name is not read")
    return found


def _batch_and_places(x: HostTensor, weight: HostTensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(weight.shape) - 2
    return x.shape[: len(x.shape) - rank - 1], x.shape[len(x.shape) - rank :]


def _shape_of_convolution(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    x, weight = operands[:2]
    batch, extents = _batch_and_places(x, weight)
    given = (_each(arguments.get(name), len(extents), other) for name, other in _STEPS)
    places = zip(extents, weight.shape[2:], *given, strict=True)
    sizes = [(n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k, stride, pad, dilation in places]
    return (*batch, weight.shape[0], *sizes)


def _shape_of_transposed(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    x, weight = operands[:2]
    batch, extents = _batch_and_places(x, weight)
    given = (_each(arguments.get(name), len(extents), other) for name, other in (*_STEPS, ("output_padding", 0)))
    places = zip(extents, weight.shape[2:], *given, strict=True)
    sizes = [(n - 1) * stride - 2 * pad + dilation * (k - 1) + more + 1 for n, k, stride, pad, dilation, more in places]
    return (*batch, weight.shape[1] * _groups(arguments), *sizes)


_CONVOLUTION = Reading(
    ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    3,
    _shape_of_convolution,
    _convolution,
    planes=True,
)
_TRANSPOSED = Reading(
    ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"),
    3,
    _shape_of_transposed,
    _transposed,
    planes=True,
)
READINGS: Mapping[str, Reading] = {
    f"{package}.conv{kind}{rank}d": reading
    for package in ("torch", "torch.nn.functional")
    for kind, reading in (("", _CONVOLUTION), ("_transpose", _TRANSPOSED))
    for rank in (1, 2, 3)
}

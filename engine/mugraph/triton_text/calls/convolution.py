"""Convolutions, without groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.calls.call import Box, Call, Reading
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.source import is_sequence, listed
from mugraph.triton_text.tensors import HostTensor

_STEPS = (("stride", 1), ("padding", 0), ("dilation", 1))


def _convolution(call: Call, box: Box) -> Real:
    x, weight = call.operands[:2]
    reals = call.reals
    rank = len(weight.shape) - 2
    strides, pads, dilations = (_each(call.arguments.get(name), rank, other) for name, other in _STEPS)
    groups = call.arguments.get("groups") or 1
    if groups != 1:
        raise Unreadable("a convolution in groups is not read")
    batch, channels, *positions = box if len(box) == rank + 2 else (slice(0, 1), *box)
    taps = list(np.ndindex(*weight.shape[2:]))
    columns: list[Real] = []
    for tap in taps:
        index: list[NDArray[np.int64]] = []
        inside: list[NDArray[np.bool_]] = []
        for d in range(rank):
            along: NDArray[np.int64] = np.arange(positions[d].start, positions[d].stop, dtype=np.int64)
            place = along * strides[d] + tap[d] * dilations[d] - pads[d]
            good = (place >= 0) & (place < x.shape[len(x.shape) - rank + d])
            index.append(np.where(good, place, 0))
            inside.append(good)
        own: list[Any] = [np.arange(x.shape[0])[batch]] if len(x.shape) == rank + 2 else []
        own += [np.arange(weight.shape[1]), *index]
        places = x.places(own)
        found = call.world.read(x.memory, places.reshape(-1), call.number).each(
            lambda array, at=places: array.reshape(at.shape)
        )
        mask = np.ones((1,) * places.ndim, np.bool_)
        for d, good in enumerate(inside):
            at = places.ndim - rank + d
            mask = mask & good.reshape([-1 if i == at else 1 for i in range(places.ndim)])
        columns.append(reals.chosen(mask, found, reals.constant(0.0, places.ndim - 1)))
    shape = columns[0].p.shape if columns[0].p.ndim == rank + 2 else (1, *columns[0].p.shape)
    joined = Real(
        np.concatenate([c.p.reshape(shape) for c in columns], 1),
        None if columns[0].q is None else np.concatenate([c.q.reshape(shape) for c in columns if c.q is not None], 1),
    )
    flat = joined.each(
        lambda a: np.moveaxis(a.reshape(shape[0], -1, prod(shape[2:])), 1, 2)
    )  # [batch, places, c * taps]
    matrix = call.part(weight, (channels, *(slice(0, n) for n in weight.shape[1:])))
    matrix = matrix.each(lambda a: np.moveaxis(a.reshape(*a.shape[:2], -1), 2, 1).reshape(a.shape[0], -1).T)
    found = reals.dot(flat, matrix.each(lambda a: a[None]))
    found = found.each(lambda a: np.moveaxis(a, 2, 1).reshape([part.stop - part.start for part in box]))
    for bias in call.operands[2:]:
        added = call.part(bias, (channels,))
        found = reals.add(found, added.each(lambda a: a.reshape(-1, *(1,) * rank)))
    return found


def _each(value: Any, rank: int, default: int) -> tuple[int, ...]:
    value = default if value is None else value
    found = listed(value) if is_sequence(value) else (value,) * rank
    if not all(isinstance(n, int) for n in found):
        raise Unreadable("a convolution with padding by name is not read")
    return found


def _shape_of_convolution(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    x, weight = operands[:2]
    rank = len(weight.shape) - 2
    places = zip(
        x.shape[len(x.shape) - rank :],
        weight.shape[2:],
        *(_each(arguments.get(name), rank, other) for name, other in _STEPS),
        strict=True,
    )
    sizes = [(n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k, stride, pad, dilation in places]
    return (*x.shape[: len(x.shape) - rank - 1], weight.shape[0], *sizes)


_CONVOLUTION = Reading(
    ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    3,
    _shape_of_convolution,
    _convolution,
    planes=True,
)
READINGS: Mapping[str, Reading] = dict.fromkeys(
    ("torch.conv1d", "torch.conv2d", "torch.conv3d", "torch.nn.functional.conv2d"), _CONVOLUTION
)

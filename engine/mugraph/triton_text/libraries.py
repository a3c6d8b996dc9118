"""Calls of PyTorch in a launcher that compute: products of matrices, attention, convolutions.

Each is what PyTorch says it is; it is computed for the elements that are asked for, as boxes of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.owners import Runs
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.running import World
from mugraph.triton_text.source import is_sequence, listed
from mugraph.triton_text.tensors import HostTensor

Box = tuple[slice, ...]
Compute = Callable[["Call", Box], Real]
_STEPS = (("stride", 1), ("padding", 0), ("dilation", 1))


@dataclass(eq=False)
class Call:
    """A call as a step of a launcher. Blocks of its result are whole rows of its dimensions but the last."""

    world: World
    number: int
    function: str
    operands: tuple[HostTensor, ...]
    arguments: Mapping[str, Any]
    out: HostTensor
    line: int
    compute: Compute

    @property
    def reals(self) -> Reals:
        return self.world.reals

    def survey(self) -> None:
        """Say that it writes all of its result, a row being a block."""
        layer = self.out.memory.layer(self.number, self.line)
        places = self.out.places().reshape(-1, self.out.shape[-1])
        rows = np.arange(len(places))
        ends = places[:, -1] + 1
        if (ends - places[:, 0] == places.shape[1]).all():
            layer.owners.add(Runs(places[:, 0], ends, rows))
        else:
            flat = places.reshape(-1)
            layer.owners.add(Runs(flat, flat + 1, np.repeat(rows, places.shape[1])))
        for operand in self.operands:
            if not operand.memory.is_written(self.number):
                raise Wrong("unwritten", f"{self.function} reads {operand.memory.name}, not all of which was written")

    def run(self, blocks: NDArray[np.int64]) -> None:
        layer = self.out.memory.of_step(self.number)
        assert layer is not None
        for box in _boxes(self.out.shape, blocks):
            places = self.out.places(box)
            value = self.compute(self, box)
            layer.put(places.reshape(-1), value.each(lambda x: x.reshape(-1)))

    def part(self, operand: HostTensor, box: Sequence[slice]) -> Real:
        """A part of an operand."""
        memory, run = operand.memory, operand.run_dim(box)
        if memory.source is None or memory.layers or run is None:
            places = operand.places(box)
            self.world.elements += places.size
            found = self.world.read(memory, places.reshape(-1), self.number)
            return found.each(lambda array: array.reshape(places.shape))
        starts = operand.places([slice(b.start, b.start + 1) if d == run else b for d, b in enumerate(box)])
        p, q = self.world.inputs.block(starts.squeeze(run) + memory.source, box[run].stop - box[run].start)
        self.world.elements += p.size
        return Real(p, q).each(lambda array: np.moveaxis(array, -1, run))


def _boxes(shape: Sequence[int], rows: NDArray[np.int64]) -> list[Box]:
    """Of a result's rows: neighbours in the last dimension but one are together."""
    if len(shape) < 2:
        return [tuple(slice(0, n) for n in shape)]
    found: list[Box] = []
    height = shape[-2]
    for outer in np.unique(rows // height):
        inner = rows[rows // height == outer] % height
        index = np.unravel_index(int(outer), shape[:-2]) if shape[:-2] else ()
        for run in np.split(inner, np.flatnonzero(np.diff(inner) != 1) + 1):
            first, last = int(run[0]), int(run[-1]) + 1
            found.append((*(slice(int(i), int(i) + 1) for i in index), slice(first, last), slice(0, shape[-1])))
    return found


def _product(call: Call, box: Box) -> Real:
    left, right = call.operands[:2]
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise Unreadable(f"{call.function} of vectors is not read")
    (*outer, rows, columns) = box
    one = call.part(left, (*_of(left, outer), rows, slice(0, left.shape[-1])))
    two = call.part(right, (*_of(right, outer), slice(0, right.shape[-2]), columns))
    return call.reals.dot(*_matrices(one, two))


def _of(operand: HostTensor, outer: Sequence[slice]) -> tuple[slice, ...]:
    """The part of an operand's leading dimensions; those of one element are broadcast."""
    own = operand.shape[:-2]
    used = outer[len(outer) - len(own) :]
    return tuple(slice(0, 1) if n == 1 else part for n, part in zip(own, used, strict=True))


def _matrices(a: Real, b: Real) -> tuple[Real, Real]:
    rank = max(a.p.ndim, b.p.ndim) + 1

    def padded(value: Real) -> Real:
        return value.each(lambda x: x.reshape((1,) * (rank - x.ndim) + x.shape))

    return padded(a), padded(b)


def _linear(call: Call, box: Box) -> Real:
    x, weight, *rest = call.operands
    (*outer, columns) = box
    rows = call.part(x, (*outer, slice(0, x.shape[-1])))
    matrix = call.part(weight, (columns, slice(0, weight.shape[1]))).each(lambda array: array.T)
    flat = rows.each(lambda array: array.reshape(-1, array.shape[-1]))
    found = call.reals.dot(*_matrices(flat, matrix))
    found = found.each(lambda array: array.reshape(*rows.p.shape[:-1], array.shape[-1]))
    if rest:
        bias = call.part(rest[0], (columns,))
        found = call.reals.add(found, bias.each(lambda x: x.reshape((1,) * (found.p.ndim - 1) + x.shape)))
    return found


def _addmm(call: Call, box: Box) -> Real:
    bias, left, right = call.operands
    rows, columns = box
    one = call.part(left, (rows, slice(0, left.shape[1])))
    two = call.part(right, (slice(0, right.shape[0]), columns))
    part = [slice(0, 1) if n == 1 else at for n, at in zip(bias.shape, box[-len(bias.shape) :], strict=True)]
    found = call.reals.dot(*_matrices(one, two))
    added = call.part(bias, part)
    return call.reals.add(found, added.each(lambda x: x.reshape((1,) * (found.p.ndim - x.ndim) + x.shape)))


def _attention(call: Call, box: Box) -> Real:
    query, key, value = call.operands
    reals = call.reals
    (*outer, rows, columns) = box
    depth = query.shape[-1]
    q = call.part(query, (*outer, rows, slice(0, depth)))
    k = call.part(key, (*_of(key, outer), slice(0, key.shape[-2]), slice(0, depth)))
    v = call.part(value, (*_of(value, outer), slice(0, value.shape[-2]), columns))
    scale = call.arguments.get("scale")
    scale = 1 / sqrt(depth) if scale is None else float(scale)
    a, b = _matrices(q, k.each(lambda x: np.swapaxes(x, -1, -2)))
    scores = reals.mul(reals.dot(a, b), reals.constant(scale, a.p.ndim - 1), None, scale)
    weights = reals.exp(scores)
    total = reals.sum(weights, weights.p.ndim - 1, weights.p.shape[-1])
    w, u = _matrices(weights, v)
    return reals.div(reals.dot(w, u), total.each(lambda x: x.reshape((1,) * (w.p.ndim - x.ndim) + x.shape)))


def _convolution(call: Call, box: Box) -> Real:
    x, weight = call.operands[:2]
    reals = call.reals
    rank = len(weight.shape) - 2
    strides, pads, dilations = (_each(call.arguments.get(name), rank, other) for name, other in _STEPS)
    groups = call.arguments.get("groups") or 1
    if groups != 1 or len(call.operands) > 2:
        raise Unreadable("a convolution in groups, or with a bias, is not read")
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
    return found.each(lambda a: np.moveaxis(a, 2, 1).reshape([part.stop - part.start for part in box]))


def _each(value: Any, rank: int, default: int) -> tuple[int, ...]:
    value = default if value is None else value
    found = listed(value) if is_sequence(value) else (value,) * rank
    if not all(isinstance(n, int) for n in found):
        raise Unreadable("a convolution with padding by name is not read")
    return found


def _rows(left: HostTensor, columns: int, right: HostTensor | None = None) -> tuple[int, ...]:
    outer = np.broadcast_shapes(left.shape[:-2], right.shape[:-2]) if right is not None else left.shape[:-2]
    return (*outer, left.shape[-2], columns)


def _shape_of_product(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    left, right = operands[-2:]
    if left.shape[-1] != right.shape[-2]:
        raise Wrong("type", f"a product of shapes {list(left.shape)} and {list(right.shape)}")
    return _rows(left, right.shape[-1], right)


def _shape_of_attention(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if any(arguments.get(name) for name in ("attn_mask", "is_causal", "enable_gqa", "dropout_p")):
        raise Unreadable("attention with a mask is not read")
    query, _, value = operands
    return (*query.shape[:-1], value.shape[-1])


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


def _shape_of_linear(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    return (*operands[0].shape[:-1], operands[1].shape[0])


@dataclass(frozen=True)
class Library:
    """parameters: of the call, in order; the first `tensors` are operands"""

    parameters: tuple[str, ...]
    tensors: int
    shape: Callable[[Sequence[HostTensor], Mapping[str, Any]], tuple[int, ...]]
    compute: Compute


_CONV = Library(
    ("input", "weight", "bias", "stride", "padding", "dilation", "groups"), 3, _shape_of_convolution, _convolution
)
_MM = Library(("input", "other"), 2, _shape_of_product, _product)
_LINEAR = Library(("input", "weight", "bias"), 3, _shape_of_linear, _linear)
LIBRARY: Mapping[str, Library] = {
    "torch.mm": _MM,
    "torch.bmm": _MM,
    "torch.matmul": _MM,
    "torch.addmm": Library(("bias", "input", "other"), 3, _shape_of_product, _addmm),
    "torch.nn.functional.linear": _LINEAR,
    "torch.nn.functional.scaled_dot_product_attention": Library(
        ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"), 3,
        _shape_of_attention, _attention,
    ),
    "torch.conv1d": _CONV,
    "torch.conv2d": _CONV,
    "torch.conv3d": _CONV,
    "torch.nn.functional.conv2d": _CONV,
}  # fmt: skip

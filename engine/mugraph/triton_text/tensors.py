"""Tensors as a launcher handles them: a view of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.memory import Memory
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import listed

Shape = tuple[int, ...]


@dataclass(frozen=True)
class HostTensor:
    memory: Memory
    shape: Shape
    strides: Shape
    offset: int = 0

    @property
    def is_contiguous(self) -> bool:
        return same_places(self.shape, self.strides, dense(self.shape))

    def places(self, box: Sequence[slice | NDArray[np.int64]] | None = None) -> NDArray[np.int64]:
        """Where its elements lie. box: which of each dimension"""
        found = np.full((1,) * len(self.shape), self.offset, np.int64)
        for at, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            along = np.arange(size, dtype=np.int64)
            along = along if box is None else along[box[at]]
            found = found + (along * stride).reshape([-1 if d == at else 1 for d in range(len(self.shape))])
        return found

    def run_dim(self, box: Sequence[slice]) -> int | None:
        """A dimension of more than one element, along which neighbours lie side by side."""
        found = (d for d, part in enumerate(box) if self.strides[d] == 1 and part.stop - part.start > 1)
        return next(found, None)

    def permuted(self, order: Sequence[int]) -> HostTensor:
        order = [at % len(self.shape) for at in order]
        if sorted(order) != list(range(len(self.shape))):
            raise Wrong("type", f"{order} is no order of {len(self.shape)} dimensions")
        return replace(self, shape=tuple(self.shape[a] for a in order), strides=tuple(self.strides[a] for a in order))

    def viewed(self, sizes: Sequence[Any], *, copies: bool) -> HostTensor:
        """copies: where no view has this shape, a copy would be made, which is not read"""
        if not all(isinstance(size, int) for size in sizes):
            raise Unreadable("the shape of a view is not known")
        shape = [int(size) for size in sizes]
        if -1 in shape:
            rest = prod(size for size in shape if size != -1)
            shape[shape.index(-1)] = prod(self.shape) // rest if rest else 0
        if prod(shape) != prod(self.shape):
            raise Wrong("type", f"a tensor of shape {list(self.shape)} is viewed as {list(sizes)}")
        strides = _strides_of_view(self.shape, self.strides, tuple(shape))
        if strides is None:
            what = "is copied into another order" if copies else "has no view"
            raise Unreadable(f"a tensor of shape {list(self.shape)} and strides {list(self.strides)} {what}")
        return replace(self, shape=tuple(shape), strides=strides)

    def indexed(self, key: Any) -> HostTensor:
        keys = listed(key)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            rest = len(self.shape) - sum(1 for one in keys if one is not None and one is not Ellipsis)
            keys = (*keys[:at], *(slice(None),) * rest, *keys[at + 1 :])
        shape: list[int] = []
        strides: list[int] = []
        offset, place = self.offset, 0
        for one in keys:
            if one is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[place], self.strides[place]
            place += 1
            if isinstance(one, slice):
                found = range(size)[one]
                shape.append(len(found))
                strides.append(stride * found.step)
                offset += stride * found.start
            elif isinstance(one, int) and -size <= one < size:
                offset += stride * (one % size)
            else:
                raise Unreadable("an index of a tensor is not read")
        return HostTensor(self.memory, (*shape, *self.shape[place:]), (*strides, *self.strides[place:]), offset)


def dense(shape: Sequence[int]) -> Shape:
    """Row-major strides."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def same_places(shape: Shape, strides: Shape, others: Shape) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(shape, strides, others, strict=True))


def extent_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements of the memory from the first one of a tensor to its last."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _strides_of_view(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """As torch finds them: groups of dimensions that lie together are cut anew."""
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    groups: list[tuple[int, int]] = []  # elements and innermost stride
    for size, stride in old:
        if groups and groups[-1][1] == size * stride:
            groups[-1] = groups[-1][0] * size, stride
        else:
            groups.append((size, stride))
    found: list[int] = []
    left = list(reversed(groups))
    inner = 1
    for size in reversed(wanted):
        if size == 1:
            found.append(left[0][1] * inner if left else 1)
            continue
        while left and inner == left[0][0]:
            left.pop(0)
            inner = 1
        if not left or left[0][0] % (inner * size):
            return None
        found.append(left[0][1] * inner)
        inner *= size
    return tuple(reversed(found))

"""Where the elements of a tensor lie, by axis; and an address as an index of each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from mugraph.ir.tensors import Dims, Tensor
from mugraph.triton_text.ranges.poly import ONE, ZERO, Poly, multiple, number, product
from mugraph.triton_text.ranges.values import Along

Sizes = Mapping[str, Poly]
_SEVERAL = 2
"""In place of what follows from sizes, as a number of parts, where it is asked which stride is the larger one. An
order that is not right makes an address that is not read, no more."""


def dense(shape: Sequence[Poly]) -> tuple[Poly, ...]:
    """Row-major strides."""
    return tuple(product(shape[at + 1 :]) for at in range(len(shape)))


def shape_of(tensor: Tensor, largest: Mapping[str, int], sizes: Sizes) -> tuple[Poly, ...]:
    fixed = {window.dim: tensor.shape(largest)[window.dim] for window in tensor.windows}
    return tuple(
        number(fixed[at]) if at in fixed else product(sizes[axis] for axis in dim) for at, dim in enumerate(tensor.dims)
    )


def strides_of(tensor: Tensor, largest: Mapping[str, int], sizes: Sizes) -> tuple[Poly, ...]:
    """Of each dimension: what lies just outside of the next one does so at all sizes; a gap is the same at all."""
    shape, general = tensor.shape(largest), shape_of(tensor, largest, sizes)
    found = [number(stride) for stride in tensor.strides]
    packed, reach = 1, ONE
    for at in sorted((at for at, n in enumerate(shape) if n > 1), key=lambda at: tensor.strides[at]):
        if tensor.strides[at] == packed:
            found[at] = reach
        if tensor.strides[at]:
            packed, reach = tensor.strides[at] * shape[at], found[at] * general[at]
    return tuple(found)


def layout(
    dims: Dims, shape: Sequence[Poly], strides: Sequence[Poly], sizes: Sizes, whole: frozenset[int] = frozenset()
) -> tuple[Along, ...]:
    """whole: dimensions that are not taken apart, as those read through windows"""
    found: list[Along] = []
    for at, (axes, extent, stride) in enumerate(zip(dims, shape, strides, strict=True)):
        if at in whole or not axes:
            found.append(Along("".join(axes) if len(axes) == 1 else f"dimension {at}", extent, stride))
            continue
        parts: list[Along] = []
        for axis in reversed(axes):
            parts.append(Along(axis, sizes[axis], stride))
            stride = stride * sizes[axis]
        found += reversed(parts)
    return tuple(found)


def taken_apart(offset: Poly, axes: Sequence[Along], largest: Mapping[str, int]) -> dict[str, Poly] | None:
    """An index of each axis, such that the offset is the sum of all indices times their strides. None without one.

    If each index lies in its axis, these are the element's own indices: no two elements have one address.
    largest: sizes, to tell which stride is the larger one
    """

    def much(stride: Poly) -> int:
        total = 0
        for monomial, factor in stride.terms:
            for one in monomial:
                factor *= largest.get(one, _SEVERAL)
            total += factor
        return total

    found = {one.axis: ZERO for one in axes}
    rest = offset
    moving = sorted((one for one in axes if one.stride != ZERO), key=lambda one: -much(one.stride))
    # What has one stride cannot be told apart; of them all but one have a single element.
    for _, alike in groupby(moving, key=lambda one: one.stride):
        one = max(alike, key=lambda one: much(one.extent))
        index = multiple(rest, one.stride)
        found[one.axis] = index
        rest = rest - index * one.stride
    return found if rest == ZERO else None

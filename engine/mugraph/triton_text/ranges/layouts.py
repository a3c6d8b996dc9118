"""Where the elements of a tensor lie, by axis; and an address as an index of each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from mugraph.ir.tensors import Dims, Tensor
from mugraph.ir.windows import Window
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
    found = [product(sizes[axis] for axis in dim) for dim in tensor.dims]
    for window in tensor.windows:
        dim = tensor.dims[window.dim]
        if tensor.slid.issuperset(dim):
            found[window.dim] = found[window.dim] + number(window.rest - window.pad)
        else:
            found[window.dim] = number(tensor.shape(largest)[window.dim])
    return tuple(found)


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
    dims: Dims, shape: Sequence[Poly], strides: Sequence[Poly], sizes: Sizes, windows: Sequence[Window] = ()
) -> tuple[Along, ...]:
    """A dimension that is read through a window is not taken apart."""
    found: list[Along] = []
    whole = {window.dim: window for window in windows}
    for at, (axes, extent, stride) in enumerate(zip(dims, shape, strides, strict=True)):
        if at in whole or not axes:
            window, name = whole.get(at), "".join(axes) if len(axes) == 1 else f"dimension {at}"
            slid = window is not None and window.slides and len(axes) == 1
            places = (window.pad, window.rest) if window is not None and slid else (0, 0)
            found.append(Along(name, extent, stride, *places))
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

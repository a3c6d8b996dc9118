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
        if window.lookup is not None:
            found[window.dim] = number(window.lookup.rows)
        elif window.by:
            own, fixed = sizes[window.by], number(sum(window.fixed(largest[window.by])))
            found[window.dim] = own if window.keeps else found[window.dim] - own - fixed
        elif tensor.slid.issuperset(dim) and not window.keeps:
            found[window.dim] = found[window.dim] + number(window.rest - window.pad)
        else:
            found[window.dim] = number(tensor.shape(largest)[window.dim])
    return tuple(found)


def strides_of(tensor: Tensor, largest: Mapping[str, int], sizes: Sizes) -> tuple[Poly, ...]:
    """Of each dimension: what lies just outside of the next one does so at all sizes; a gap is the same at all."""
    shape, general = tensor.memory_shape(largest), shape_of(tensor, largest, sizes)
    found = [number(stride) for stride in tensor.strides]
    packed, reach = 1, ONE
    for at in sorted((at for at, n in enumerate(shape) if n > 1), key=lambda at: tensor.strides[at]):
        if tensor.strides[at] == packed:
            found[at] = reach
        if tensor.strides[at]:
            packed, reach = tensor.strides[at] * shape[at], found[at] * general[at]
    return tuple(found)


def layout(
    dims: Dims,
    shape: Sequence[Poly],
    strides: Sequence[Poly],
    sizes: Sizes,
    windows: Sequence[Window] = (),
    largest: Mapping[str, int] | None = None,
) -> tuple[Along, ...]:
    """A dimension that is read through a window is not taken apart. largest: sizes, where there are windows"""
    found: list[Along] = []
    whole = {window.dim: window for window in windows}
    for at, (axes, extent, stride) in enumerate(zip(dims, shape, strides, strict=True)):
        if at in whole or not axes:
            window, name = whole.get(at), "".join(axes) if len(axes) == 1 else f"dimension {at}"
            if window is not None and window.lookup is not None:
                name = f"row of dimension {at}"
            if window is None or not window.slides or len(axes) != 1:
                found.append(Along(name, extent, stride))
                continue
            pad, rest = number(window.pad), number(window.rest)
            if window.by and not window.keeps:
                before, after = map(number, window.fixed((largest or {})[window.by]))
                more = sizes[window.by]
                pad, rest = (before, ZERO - after - more) if window.behind else (before + more, ZERO - after)
            elif window.keeps == "last":
                pad = sizes[axes[0]] + rest - extent
            elif window.keeps:
                rest = extent + pad - sizes[axes[0]]
            found.append(Along(name, extent, stride, pad, rest))
            continue
        parts: list[Along] = []
        for axis in reversed(axes):
            parts.append(Along(axis, sizes[axis], stride))
            stride = stride * sizes[axis]
        found += reversed(parts)
    return tuple(found)


def taken_apart(
    offset: Poly, axes: Sequence[Along], largest: Mapping[str, int], known: Mapping[str, Sequence[Poly]] | None = None
) -> dict[str, Poly] | None:
    """An index of each axis, such that the offset is the sum of all indices times their strides. None without one.

    If each index lies in its axis, these are the element's own indices: no two elements have one address.
    largest: sizes, to tell which stride is the larger one
    known:   indices that the kernel has elsewhere of axes along which a window begins at a place that varies: what runs
             over such a dimension goes beyond its end, so that strides do not tell its index from others
    """
    for one in axes:
        for index in (known or {}).get(one.axis, ()) if one.is_of_another_length else ():
            others = [other for other in axes if other is not one]
            rest = taken_apart(offset - (index - one.pad) * one.stride, others, largest)
            if rest is not None and all(index.atoms.isdisjoint(other.atoms) for other in rest.values()):
                return {other.axis: index - one.pad if other is one else rest[other.axis] for other in axes}

    def much(stride: Poly) -> int:
        total = 0
        for monomial, factor in stride.terms:
            for one in monomial:
                factor *= largest.get(one, _SEVERAL)
            total += factor
        return total

    # Where a window begins is told by itself: the rest is of what runs over it, from its first position on.
    found = {one.axis: ZERO - one.pad for one in axes}
    rest = offset
    for one in axes:
        rest = rest + one.pad * one.stride
    moving = sorted(
        (one for one in axes if one.stride != ZERO and one.extent != ONE), key=lambda one: -much(one.stride)
    )
    # What has one stride cannot be told apart; of them all but one have a single element.
    for _, alike in groupby(moving, key=lambda one: one.stride):
        one = max(alike, key=lambda one: much(one.extent))
        index = multiple(rest, one.stride)
        found[one.axis] = found[one.axis] + index
        rest = rest - index * one.stride
    return found if rest == ZERO else None

"""Text of what a window reads: the number of the place, whether there is one, and which is read in its stead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.index import Indices, begins
from mugraph.codegen.tile.text import plus
from mugraph.ir.kernel import Rejected
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window


def window_masks(tensor: Tensor, dims: Sequence[Dim], indices: Indices) -> Iterator[str]:
    """Conditions under which the tensor's windows read an element of it; none where all that they read is there.

    Places are counted from where the first position's first tap reads, which is `pad` before the tensor.
    """
    for window in (window for window in tensor.windows if not window.edge and window.lookup is None):
        place = _place(tensor, window, dims, indices)
        if not place:
            if window.places(tensor.dims[window.dim], indices.sizes) == [-1]:
                raise Rejected(f"the only place that is read of {tensor.name} lies outside of it.")
            continue
        axis = _dynamic(tensor, window, indices)
        if window.begins_by_size:
            (axis,) = tensor.dims[window.dim]
            yield f"({place} >= {begins(window, axis, indices.names.size, indices.sizes)})"
        elif window.pad > 0:
            yield f"({place} >= {window.pad})"
        if axis and window.by and window.keeps == "first":
            yield f"({place} < {plus(indices.names.size[window.by], window.pad)})"
        elif axis and window.by and window.behind:
            _, after = window.fixed(indices.sizes[window.by])
            yield f"({place} < {plus(f'{indices.names.size[axis]} - {indices.names.size[window.by]}', -after)})"
        elif axis and window.rest < 0 and window.keeps != "first":
            yield f"({place} < {plus(indices.names.size[axis], window.rest)})"  # its extent, and `pad`
        elif window.rest < 0 or window.keeps == "first":
            extent = window.extent(tensor.dims[window.dim], indices.sizes)
            yield f"({place} < {(extent - 1) * window.spread + 1 + window.pad})"
        if window.spread > 1:
            yield f"(({_in_steps(place, window)}) % {window.spread} == 0)"


def found_places(tensor: Tensor, dims: Sequence[Dim], indices: Indices) -> dict[int, str]:
    """Dimension -> text of the element that is read there, of windows whose elements are no sums of indices; in
    parentheses where it is a sum."""
    found: dict[int, str] = {}
    for window in (window for window in tensor.windows if not window.is_sum and window.lookup is None):
        extent = window.extent(tensor.dims[window.dim], indices.sizes)
        place = _place(tensor, window, dims, indices)
        if window.spread > 1:
            before = -(-window.pad // window.spread)
            element = f"({_in_steps(place, window)}) // {window.spread}"
            found[window.dim] = f"({element} - {before})" if place else str(-before)
        else:
            found[window.dim] = _nearest(place, window, extent) if place else str(window.nearest(-window.pad, extent))
    return found


def _dynamic(tensor: Tensor, window: Window, indices: Indices) -> str:
    """The axis of a window whose size is an argument of the kernel; "" where there is none."""
    return next((axis for axis in tensor.dims[window.dim] if axis in indices.plan and indices.plan[axis].dynamic), "")


def _in_steps(place: str, window: Window) -> str:
    """A place that is counted from `pad` before the tensor, counted from a whole number of spreads before it: nothing
    negative is divided, which Triton rounds towards zero."""
    more = -window.pad % window.spread
    return f"{place} + {more}" if more else place


def _nearest(place: str, window: Window, extent: int) -> str:
    """`Window.nearest` of a place that is counted from `pad` before the tensor."""
    before, behind, step = window.pad, window.rest < 0, window.dilation
    if step == 1:
        text = f"tl.maximum({place} - {before}, 0)" if before else place
        if behind:
            return f"tl.minimum({text}, {extent - 1})"
        return text if before else f"({text})"
    text = place
    if before:  # Triton's division rounds towards zero: of nothing negative it is the usual one
        text += f" - {before} + tl.maximum({before + step - 1} - ({place}), 0) // {step} * {step}"
    if behind:
        text += f" - tl.maximum({place} - {before + extent - step}, 0) // {step} * {step}"
    return f"({text})"


def _place(tensor: Tensor, window: Window, dims: Sequence[Dim], indices: Indices) -> str:
    """position * stride + tap * dilation, the parts of each counted row by row."""
    terms: list[str] = []
    for axes, step in zip(window.split(tensor.dims[window.dim]), (window.stride, window.dilation), strict=True):
        for axis in reversed(axes):
            if axis in indices.plan:
                index = indices.at(axis, dims, turned=axis in tensor.reversed)
                terms.append(index if step == 1 else f"{index} * {step}")
            step *= indices.sizes[axis]
    return " + ".join(terms)

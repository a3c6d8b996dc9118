"""Text of what a window reads: the number of the place, and whether there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.index import Indices
from mugraph.ir.kernel import Rejected
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window


def window_masks(tensor: Tensor, dims: Sequence[Dim], indices: Indices) -> Iterator[str]:
    """Conditions under which the tensor's windows read an element of it; none where all that they read is there.

    Places are counted from where the first position's first tap reads, which is `pad` before the tensor.
    """
    for window in tensor.windows:
        place = _place(tensor, window, dims, indices)
        if not place:
            if window.places(tensor.dims[window.dim], indices.sizes) == [-1]:
                raise Rejected(f"the only place that is read of {tensor.name} lies outside of it.")
            continue
        if window.pad:
            yield f"({place} >= {window.pad})"
        if window.rest < 0:
            extent = window.extent(tensor.dims[window.dim], indices.sizes)
            yield f"({place} < {extent + window.pad})"


def _place(tensor: Tensor, window: Window, dims: Sequence[Dim], indices: Indices) -> str:
    """position * stride + tap * dilation, the parts of each counted row by row."""
    terms: list[str] = []
    for axes, step in zip(window.split(tensor.dims[window.dim]), (window.stride, window.dilation), strict=True):
        for axis in reversed(axes):
            if axis in indices.plan:
                index = indices.at(axis, dims)
                terms.append(index if step == 1 else f"{index} * {step}")
            step *= indices.sizes[axis]
    return " + ".join(terms)

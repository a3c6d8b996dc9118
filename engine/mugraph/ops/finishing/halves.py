"""Parts of a tensor that take turns along its last dimension, `x[:, ::2]` and `x[:, 1::2]`, as windows of all of it.

A kernel that reads both reads whole words of memory (codegen/tile/halves.py), and no view has to be made for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.halves import STEP
from mugraph.ir.windows import Window
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.views import View


def halves(views: Sequence[tuple[int, View, AtomDims]]) -> Mapping[int, Window]:
    """Of loads, what each is a part of, and the axes that it is loaded at: those that have another half, with
    the window through which each reads the whole."""
    found: dict[int, Window] = {}
    for load, view, axes in views:
        own = _window(view)
        others = (_window(other) for _, other, at in views if other.value == view.value and at == axes)
        if own is not None and any(one is not None and one.dim == own.dim and one.pad != own.pad for one in others):
            found[load] = own
    return found


def _window(view: View) -> Window | None:
    """Of every second element of a dimension that lies together, where the view leaves the others as they are."""
    if view.shape is not None or view.part or view.whole:
        return None
    cut = [number for number, index in enumerate(view.index) if index != slice(None)]
    if len(cut) != 1:
        return None
    (number,) = cut
    index, size = view.index[number], view.seen.shape[number]
    if not isinstance(index, slice) or index.step != STEP or index.stop is not None or size % STEP:
        return None
    first = index.start or 0
    if first not in range(STEP) or view.seen.strides[number] != 1:
        return None
    return Window(number, 0, STEP, 1, -first, STEP - 1 - first)

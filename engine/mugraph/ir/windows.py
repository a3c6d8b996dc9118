"""Windows: a dimension that two groups of axes run over together, as a convolution reads its input.

The axes of a windowed dimension are *positions*, outermost first, then *taps*. Place number
position * stride + tap * dilation - pad of the dimension is read, zero where there is no such place. A convolution's
height is a window of the output's rows (positions) and the kernel's rows (taps).

A window in `reverse` counts its positions from the last one: of one tap, it is a dimension from its end to its
beginning.

A window with a `spread` reads a dimension as a transposed convolution does: with so many places from one of its
elements to the next one, of which those between are zeros. Places are counted with the zeros.

A window with `edge` reads what another tap of its position reads where there is no such place: the nearest place that
is a whole number of dilations away. A maximum over its taps is one over the places that are there.

A window with a `lookup` has positions alone: each reads the row that an index says (lookups.py). Its places are counted
as if those rows lay one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from mugraph.ir.calls import Corner
from mugraph.ir.lookups import Lookup

_NEAR = 3
"""Places further that a window stays at all sizes."""


@dataclass(frozen=True, slots=True)
class Window:
    """How one dimension of a tensor is read.

    dim:      which
    taps:     how many of its axes, the last ones, are taps
    stride:   places between neighbouring positions, at least 1
    dilation: places between neighbouring taps, at least 1
    pad:      places before the dimension's first one that the first position reaches; negative: so many of its first
              places are not read, of a window without taps
    rest:     places of the dimension after the last one that is read; where negative, so many are read beyond its end
    edge:     beyond the dimension, is the nearest place read that is whole dilations away? Else zero
    reverse:  is the last position the first to be read?
    spread:   places from one element of the dimension to the next one, at least 1: those between hold zeros. Not with
              `edge`
    keeps:    where the size of its positions' axis varies and that of the dimension does not, the position, the first
              or the last one, that reads the same place at all sizes; "" where the dimension varies with the axis, so
              that `pad` and `rest` stay. Only of windows that slide
    by:       where two lengths that vary are joined along the positions' axis, an axis with as many elements as one of
              them has: the dimension's, if it keeps a place; else that of the other one
    behind:   does the other one come after the dimension? Else before it. Only with `by`, without a place that it keeps
    lookup:   where the rows are said that it reads; None of any other window. With nothing else of the above
    """

    dim: int
    taps: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    rest: int = 0
    edge: bool = False
    reverse: bool = False
    spread: int = 1
    keeps: Corner = ""
    by: str = ""
    behind: bool = False
    lookup: Lookup | None = None

    def split(self, axes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The dimension's axes as positions and taps."""
        at = len(axes) - self.taps
        return tuple(axes[:at]), tuple(axes[at:])

    def extent(self, axes: Sequence[str], sizes: Mapping[str, int]) -> int:
        """Elements of the dimension."""
        return -(-(self._span(axes, sizes) - self.pad + self.rest) // self.spread)

    def of_extent(self, extent: int, axes: Sequence[str], sizes: Mapping[str, int]) -> Window:
        """The window of a dimension with so many elements: its `rest` follows from them."""
        return replace(self, rest=(extent - 1) * self.spread + 1 + self.pad - self._span(axes, sizes))

    def _span(self, axes: Sequence[str], sizes: Mapping[str, int]) -> int:
        """Places from the first one that is read to the last one."""
        positions, taps = (prod(sizes[axis] for axis in part) for part in self.split(axes))
        return (positions - 1) * self.stride + (taps - 1) * self.dilation + 1

    def places(self, axes: Sequence[str], sizes: Mapping[str, int]) -> list[int]:
        """Which element is read for each position and tap, taps fastest; -1 where there is none."""
        positions, taps = (prod(sizes[axis] for axis in part) for part in self.split(axes))
        extent = self.extent(axes, sizes)
        order = range(positions)[::-1] if self.reverse else range(positions)
        read = (p * self.stride + t * self.dilation - self.pad for p in order for t in range(taps))
        if self.edge:
            return [self.nearest(place, extent) for place in read]
        elements = (divmod(place, self.spread) for place in read)
        return [element if 0 <= element < extent and not between else -1 for element, between in elements]

    def nearest(self, place: int, extent: int) -> int:
        """The place itself, or where it lies outside, the nearest one that is whole dilations away; -1 where there is
        none (of fewer places than a dilation)."""
        if place < 0:
            place += -(place // self.dilation) * self.dilation
        elif place >= extent:
            place -= -((extent - 1 - place) // self.dilation) * self.dilation
        return place if 0 <= place < extent else -1

    @property
    def slides(self) -> bool:
        """Is the place that is read that of its position, a number of places further?"""
        moves = max(self.stride, self.spread) == 1 and self.lookup is None
        return not self.taps and moves and not self.edge and not self.reverse

    @property
    def begins_by_size(self) -> bool:
        """Does the place that its first position reads depend on a size?"""
        return self.keeps == "last" or bool(self.by and not self.keeps and not self.behind)

    def fixed(self, size: int) -> tuple[int, int]:
        """Of a window `by` an axis of this size that keeps no place: how many places lie before the dimension and after
        it at all sizes, besides as many as the axis has."""
        return (self.pad, -self.rest - size) if self.behind else (self.pad - size, -self.rest)

    @property
    def leaves(self) -> bool:
        """Does it reach beyond the dimension on either side?"""
        return self.pad > 0 or self.rest < 0

    @property
    def has_zeros(self) -> bool:
        """Are zeros read beyond the dimension, or between its elements?"""
        return self.spread > 1 or (self.leaves and not self.edge)

    @property
    def is_sum(self) -> bool:
        """Is the element that is read a sum of indices times numbers?"""
        return self.spread == 1 and not self.edge and self.lookup is None


def at_sizes(window: Window, axes: Sequence[str], old: Mapping[str, int], new: Mapping[str, int]) -> Window:
    """The window that the program has at other sizes of axes that vary."""
    if window.by:
        positions = prod(new[axis] for axis in axes)
        return _by(window, positions, old.get(window.by, 0), new.get(window.by, 0))
    more = prod(new[axis] for axis in axes) - prod(old[axis] for axis in axes)
    match window.keeps:
        case "first":
            return replace(window, rest=window.rest - more)
        case "last":
            return replace(window, pad=window.pad + more)
        case _:
            return window


def _by(window: Window, positions: int, old: int, size: int) -> Window:
    """old, size: of `window.by`; 0 where a graph does not have that axis: no kernel is written of it"""
    if not size:
        return window
    match window.keeps:
        case "first":
            return replace(window, rest=size + window.pad - positions)
        case "last":
            return replace(window, pad=positions + window.rest - size)
        case _:
            before, after = window.fixed(old)
            return replace(window, pad=before + (0 if window.behind else size), rest=-after - size * window.behind)


def room(window: Window, axes: Sequence[str], sizes: Mapping[str, int]) -> tuple[str, int] | None:
    """The axis that has to be longer, and how long, for the dimension to keep two elements at these sizes (with `edge`
    as many as a dilation); None where it has them, or has no axes."""
    least = max(2, window.dilation) if window.edge else 2
    needed = least - window.extent(axes, sizes)
    positions, taps = window.split(axes)
    if needed <= 0 or not axes:
        return None
    outer, *inner = positions or taps
    step = prod(sizes[axis] for axis in inner) * (window.stride if positions else window.dilation)
    return outer, sizes[outer] + -(-needed * window.spread // step)


def resized(window: Window, axes: Sequence[str], old: Mapping[str, int], new: Mapping[str, int]) -> Window:
    """The window at other sizes. Where it reads a dimension some places further, as an operand of a concatenation, so
    much further that little would be left of the dimension, it keeps its place in proportion. Where an axis says how
    much lies beside it, it is as long as it says."""
    if window.by in old and window.by in new:
        return at_sizes(window, axes, old, new)
    if not window.slides:
        return window
    before, after = (prod(sizes[axis] for axis in axes) for sizes in (old, new))

    def moved(places: int) -> int:
        return places if places <= _NEAR else _NEAR + (places - _NEAR) * after // (2 * before)

    return window if before == after else replace(window, pad=moved(window.pad), rest=-moved(-window.rest))

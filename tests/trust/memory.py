"""Device memory as the interpreter has it: flat buffers of float64, poisoned until written, checked at every access."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Floats = NDArray[np.float64]
Places = NDArray[np.int64]
"""Which element of a buffer; OUTSIDE where a window leaves its dimension."""
OUTSIDE = np.iinfo(np.int64).min


class Wrong(Exception):
    """The graph has no meaning, or touches memory it must not: one sentence."""


class Buffer:
    """One piece of memory, for several sets of inputs at once.

    data:    [sets, elements]
    written: [elements]
    """

    def __init__(self, sets: int, elements: int) -> None:
        self.data: Floats = np.full((sets, elements), np.nan)
        self.written = np.zeros(elements, np.bool_)

    @property
    def elements(self) -> int:
        return len(self.written)

    def read(self, places: Places, who: str) -> Floats:
        """[sets, *places.shape], zero where a place is OUTSIDE."""
        lacking = places == OUTSIDE
        inside = np.where(lacking, 0, places) if lacking.any() else places
        self._check(places[~lacking], f"{who} reads")
        if not self.written[places[~lacking]].all():
            raise Wrong(f"{who} reads what was never written")
        values = self.data[:, inside]
        return np.where(lacking, 0.0, values) if lacking.any() else values

    def write(self, places: Places, values: Floats, who: str) -> None:
        """values: [sets, *places.shape]. What is there already must be the same numbers."""
        self._check(places, f"{who} writes")
        flat, numbers = places.reshape(-1), values.reshape(len(values), -1)
        again = self.written[flat]
        if again.any() and not np.array_equal(self.data[:, flat[again]], numbers[:, again], equal_nan=True):
            raise Wrong(f"{who} writes an element twice, with different values")
        self.data[:, flat] = numbers
        self.written[flat] = True
        if not np.array_equal(self.data[:, flat], numbers, equal_nan=True):  # two of these places are one
            raise Wrong(f"{who} writes an element twice, with different values")

    def _check(self, places: Places, who: str) -> None:
        if places.size and (places.min() < 0 or places.max() >= self.elements):
            raise Wrong(f"{who} outside of its memory")


def extent(window: Json, axes: list[str], sizes: Mapping[str, int]) -> int:
    """Elements of a dimension that is read through a window."""
    positions, taps = _counts(window, axes, sizes)
    reach = (positions - 1) * window["stride"] + (taps - 1) * window["dilation"] + 1
    return -(-(reach - window["pad"] + window["rest"]) // window.get("spread", 1))


def shape_of(tensor: Json, sizes: Mapping[str, int]) -> tuple[int, ...]:
    windows = {window["dim"]: window for window in tensor.get("windows", ())}
    try:
        return tuple(
            extent(windows[number], dim, sizes) if number in windows else prod(sizes[axis] for axis in dim)
            for number, dim in enumerate(tensor["dims"])
        )
    except KeyError as axis:
        raise Wrong(f"axis {axis} of {tensor['name']} has no size") from None


def places_of(tensor: Json, order: list[str], sizes: Mapping[str, int]) -> Places:
    """The place of every element of a tensor, one dimension for each axis in `order` (1 where the tensor lacks it)."""
    dims, strides = tensor["dims"], tensor["strides"]
    axes = [axis for dim in dims for axis in dim]
    if len(set(axes)) != len(axes) or len(dims) != len(strides):
        raise Wrong(f"{tensor['name']} has an axis twice, or strides for other dimensions")
    if not set(axes) <= set(order):
        raise Wrong(f"{tensor['name']} has an axis without a size")
    windows = {window["dim"]: window for window in tensor.get("windows", ())}
    if not windows.keys() <= set(range(len(dims))):
        raise Wrong(f"{tensor['name']} has a window of no dimension")

    def along(names: list[str]) -> Places:
        """The number of a place along several axes, the last one fastest."""
        count = np.zeros([1] * len(order), np.int64)
        for axis in names:
            shape = [1] * len(order)
            shape[order.index(axis)] = sizes[axis]
            count = count * sizes[axis] + np.arange(sizes[axis]).reshape(shape)
        return count

    total = np.zeros([sizes[axis] if axis in axes else 1 for axis in order], np.int64)
    outside = np.zeros(total.shape, np.bool_)
    for number, (dim, stride) in enumerate(zip(dims, strides, strict=True)):
        place = along(dim)
        if number in windows:
            window = windows[number]
            _counts(window, dim, sizes)
            at = len(dim) - window["taps"]
            positions = along(dim[:at])
            if window.get("reverse"):
                positions = prod(sizes[axis] for axis in dim[:at]) - 1 - positions
            place = positions * window["stride"] + along(dim[at:]) * window["dilation"] - window["pad"]
            if window.get("edge"):
                place = _repeated(place, extent(window, dim, sizes), window["dilation"])
            place, between = np.divmod(place, window.get("spread", 1))
            outside = outside | (between != 0) | (place < 0) | (place >= extent(window, dim, sizes))
        total = total + place * stride
    return np.where(outside, OUTSIDE, total)


def _repeated(place: Places, count: int, step: int) -> Places:
    """The nearest place that is there, whole steps away; one that is not there where no such place is."""
    for _ in range(int(max(-place.min(), place.max() - count + 1, 0)) // step + 1):
        place = np.where(place < 0, place + step, np.where(place >= count, place - step, place))
    return place


def _counts(window: Json, axes: list[str], sizes: Mapping[str, int]) -> tuple[int, int]:
    """Positions and taps."""
    if not 0 <= window["taps"] <= len(axes) or window["stride"] < 1 or window["dilation"] < 1 or window["pad"] < 0:
        raise Wrong("a window has more taps than axes, or a step below 1")
    if window.get("spread", 1) < 1 or (window.get("edge") and window.get("spread", 1) > 1):
        raise Wrong("a window has a spread below 1, or zeros between elements and others in their stead")
    at = len(axes) - window["taps"]
    return prod(sizes[axis] for axis in axes[:at]), prod(sizes[axis] for axis in axes[at:])

"""Integers and masks of a tile, for many blocks at once, kept as they are written: a sum of parts, each of which varies
along few dimensions. `base + row[:, None] * stride + column[None, :]` is three small arrays, not a tile.

The first dimension of every array runs over blocks; its size is 1 where all of them have the same numbers. Where a
launch is looked at as a whole (boxes.py), several dimensions do, one for each digit of a block's number: those before
the tile's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", np.int64, np.bool_)
Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
Shape = tuple[int, ...]
REACH = 1 << 31
"""Numbers from 0 on that an int32 holds, and elements that an address of 32 bits reaches."""


@dataclass(frozen=True, slots=True)
class Ints:
    """The sum of its parts; each has dimensions of blocks before those of `shape`, size 1 where it does not vary."""

    shape: Shape
    parts: tuple[Array, ...]
    kind: str = "int32"

    def whole(self) -> Array:
        """All parts added, of size 1 where none varies."""
        return _joined(self.parts, np.add)


@dataclass(frozen=True, slots=True)
class Bools:
    """True where all parts are."""

    shape: Shape
    parts: tuple[Mask, ...]

    def whole(self) -> Mask:
        return _joined(self.parts, np.logical_and)


def number(value: int, kind: str = "int32") -> Ints:
    return Ints((), (np.full((1,), value, np.int64),), kind)


def truth(value: bool) -> Bools:
    return Bools((), (np.full((1,), value, np.bool_),))


def total(shape: Shape, parts: Sequence[Array], kind: str = "int32") -> Ints:
    """Parts that vary along no more than another one are added to it."""
    return Ints(shape, _merged(parts, np.add), kind)


def every(shape: Shape, parts: Sequence[Mask]) -> Bools:
    return Bools(shape, _merged(parts, np.logical_and))


def times(a: Ints, b: Ints, shape: Shape, kind: str) -> Ints:
    """Of tiles of one shape."""
    return total(shape, [x * y for x in a.parts for y in b.parts], kind)


def covers(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Does `a` vary along every dimension that `b` varies along?"""
    rank = max(a.ndim, b.ndim)
    one, two = ((1,) * (rank - array.ndim) + array.shape for array in (a, b))
    return all(m > 1 or n == 1 for m, n in zip(one, two, strict=True))


def extent(offsets: Ints, mask: Bools | None) -> tuple[Array, Array, Mask]:
    """[blocks]: least and largest number where the mask holds, and whether it holds anywhere.

    Dimensions that no part ties together are looked at on their own.
    """
    rank = len(offsets.shape)
    conditions = mask.parts if mask is not None else ()
    low = high = np.zeros(1, np.int64)
    some = np.ones(1, np.bool_)
    for dims in _tied([*offsets.parts, *conditions], rank):
        parts = [part for part in offsets.parts if dims & _varies(part)] if dims else _flat(offsets.parts)
        own = [part for part in conditions if dims & _varies(part)] if dims else _flat(conditions)
        numbers = _joined(parts, np.add) if parts else np.zeros((1,) * (rank + 1), np.int64)
        where = _joined(own, np.logical_and) if own else None
        if where is not None:
            numbers, where = np.broadcast_arrays(numbers, where)
            some = some & where.reshape(len(where), -1).any(1)
            least = np.where(where, numbers, np.iinfo(np.int64).max)
            most = np.where(where, numbers, np.iinfo(np.int64).min)
        else:
            least = most = numbers
        lows, highs = least.reshape(len(least), -1).min(1), most.reshape(len(most), -1).max(1)
        found = lows <= highs
        low, high = low + np.where(found, lows, 0), high + np.where(found, highs, 0)
    low, high, some = np.broadcast_arrays(low, high, some)
    return low, high, some


def around(offsets: Ints) -> tuple[Array, Array]:
    """[blocks]: no number is less than the first, or more than the second: parts on their own, wherever a mask holds.
    Much less work than `extent`."""
    low = high = np.zeros(1, np.int64)
    for part in offsets.parts:
        flat = part.reshape(len(part), -1)
        low, high = low + flat.min(1), high + flat.max(1)
    return low, high


def of_blocks(part: NDArray[_Number], chosen: NDArray[np.intp]) -> NDArray[_Number]:
    """A part of a tile, of some of the blocks alone."""
    return part[chosen] if len(part) > 1 else part


def _flat(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    return [part for part in parts if not _varies(part)]


def _varies(part: NDArray[Any]) -> frozenset[int]:
    """Dimensions of the tile, counted from 1."""
    return frozenset(at for at, size in enumerate(part.shape) if at and size > 1)


def _tied(parts: Sequence[NDArray[Any]], rank: int) -> list[frozenset[int]]:
    """Groups of dimensions that some part varies along together; the empty group for what varies along none."""
    groups: list[frozenset[int]] = []
    for part in parts:
        dims = _varies(part)
        if dims:
            tied = [group for group in groups if group & dims]
            groups = [group for group in groups if not group & dims] + [dims.union(*tied)]
    return [frozenset[int](), *groups]


def _joined(parts: Sequence[NDArray[Any]], join: Callable[[Any, Any], Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = join(found, part)
    return found


def _merged(parts: Sequence[NDArray[Any]], join: Callable[[Any, Any], Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for part in parts:
        for at, other in enumerate(found):
            if covers(other, part) or covers(part, other):
                found[at] = join(other, part)
                break
        else:
            found.append(part)
    return tuple(found)

"""Tiles: what a Triton program computes with, for many blocks at once.

Integers and masks are numbers (ints.py). Floating-point numbers are elements of the fields (reals.py), or, when only
addresses are looked at, nothing but a shape and a type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import COMPARED, ELEMENTS, STORED
from mugraph.kinds import Kind as KindOfOperator
from mugraph.triton_text.ints import Bools, Ints, Shape, every, total
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong

FLOATS = ("float64", "float32", "bfloat16", "float16", "float8e4nv", "float8e5", "float8e4b8", "float8e5b16", "tf32")
STORED_NAMES: Mapping[str, str] = {
    word: name for name, one in STORED.items() for word in (one.torch, one.triton.removeprefix("tl."))
}
MADE: Mapping[str, str] = {
    name: f"{name} of a number"
    for name in (one.torch for one in STORED.values() if one.is_whole and one.torch != "bool")
}
"""Whole numbers of eight bits that a text makes of floating-point ones. They are taken to be the same numbers, which
is so where they are whole: what is done with them is to be stored to a result, of which the program says that."""
RAW = frozenset((*STORED_NAMES, *MADE.values(), *(one.torch for one in COMPARED.values()))) - {"int1"}
"""Of numbers as they are read or written, by PyTorch's names and Triton's: nothing is computed with one before it has
another type of `FLOATS`, which makes of it the same number. What Triton computes in these types wraps around, or is
rounded."""
CODES: Mapping[str, KindOfOperator] = {
    word: kind for kind in KindOfOperator for word, name in STORED_NAMES.items() if kind.stored == name
}
"""By the names of a type of floating-point numbers of eight bits: what rounds to it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of elements, by Triton's name of it."""

    name: str

    @property
    def is_float(self) -> bool:
        return self.name in FLOATS


@dataclass(frozen=True, slots=True)
class Floats:
    """real: None where only addresses are looked at. known: its value, of a number that the text states"""

    shape: Shape
    kind: str
    real: Real | None
    known: float | None = None


@dataclass(frozen=True, slots=True)
class Pointers:
    memory: Memory
    offsets: Ints

    @property
    def shape(self) -> Shape:
        return self.offsets.shape


Tile = Ints | Bools | Floats | Pointers
UNKNOWN: tuple[NDArray[Any], ...] = ()
"""Parts of integers and masks that depend on floating-point numbers, when only addresses are looked at."""


def is_known(tile: Ints | Bools) -> bool:
    return bool(tile.parts)


def of_shape(tile: Tile, shape: Shape) -> Tile:
    """Broadcast: dimensions of size 1 are added in front, and stretched."""
    own = tile.shape
    extra = len(shape) - len(own)
    if extra < 0 or any(m not in (1, n) for m, n in zip(own, shape[extra:], strict=True)):
        raise Wrong("type", f"a tile of shape {list(own)} does not fit {list(shape)}")
    if own == shape:
        return tile

    def padded(array: NDArray[Any]) -> NDArray[Any]:
        of_blocks = array.ndim - len(own)
        return array.reshape(*array.shape[:of_blocks], *(1,) * extra, *array.shape[of_blocks:]) if extra else array

    return rearranged(tile, shape, padded)


def rearranged(tile: Tile, shape: Shape, how: Any) -> Tile:
    """how: of each array"""
    match tile:
        case Ints(_, parts, kind):
            return total(shape, [how(part) for part in parts], kind) if parts else Ints(shape, (), kind)
        case Bools(_, parts):
            return every(shape, [how(part) for part in parts]) if parts else Bools(shape, ())
        case Floats(_, kind, real, known):
            return Floats(shape, kind, None if real is None else real.each(how), known)
        case Pointers(memory, offsets):
            moved = rearranged(offsets, shape, how)
            assert isinstance(moved, Ints)
            return Pointers(memory, moved)


def stretched(tile: Tile) -> Tile:
    """With arrays that have all elements of the tile, for a rearrangement that mixes dimensions."""

    def full(array: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(array, (*array.shape[: array.ndim - len(tile.shape)], *tile.shape))

    match tile:
        case Ints(shape, parts, kind) if len(parts) > 1:
            return Ints(shape, (full(Ints(shape, parts, kind).whole()),), kind)
        case Bools(shape, parts) if len(parts) > 1:
            return Bools(shape, (full(Bools(shape, parts).whole()),))
        case _:
            return rearranged(tile, tile.shape, full)


def common(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    one, two = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(one, two, strict=True)):
        raise Wrong("type", f"tiles of shapes {list(a)} and {list(b)} are used together")
    return tuple(max(m, n) for m, n in zip(one, two, strict=True))


def triton_name(dtype: str) -> str:
    """Of a type that kernels store numbers in."""
    return ELEMENTS[dtype].triton.removeprefix("tl.")


def refuse_raw(*tiles: Any) -> None:
    """Triton's arithmetic of truth values is not that of the numbers 1 and 0, 1 + 1 is 1, and an int8 wraps around."""
    for tile in tiles:
        if isinstance(tile, Floats) and tile.kind in RAW:
            raise Unreadable(f"what is read as {tile.kind} is computed with before it has a type to compute in")


def ends(value: Ints) -> tuple[int, int]:
    """No number of any block is less, or more: the parts on their own."""
    return sum(int(part.min()) for part in value.parts), sum(int(part.max()) for part in value.parts)


def elements(shape: Shape) -> int:
    return prod(shape)

"""Tiles of unknown integers and masks, and what they address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mugraph.triton_text.ints import Shape
from mugraph.triton_text.ranges.formulas import FALSE, TRUE, Formula
from mugraph.triton_text.ranges.poly import ZERO, Poly, number
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tiles import Floats, common

Lanes = tuple[frozenset[str], ...]
"""Of each dimension of a tile: the numbers that say where in it an element is."""


@dataclass(frozen=True)
class Ints:
    """value: of an element; None where nothing is known of it"""

    shape: Shape
    value: Poly | None
    lanes: Lanes


@dataclass(frozen=True)
class Bools:
    shape: Shape
    value: Formula | None
    lanes: Lanes


@dataclass(frozen=True)
class Along:
    """One axis of a tensor in memory, or a dimension that a window reads.

    pad: places before the dimension's first one that the window's first position reads; negative: so many of its first
         ones are not read. rest: places after the last one that it reads; negative: so many are read beyond its end
    """

    axis: str
    extent: Poly
    stride: Poly
    pad: Poly = ZERO
    rest: Poly = ZERO

    @property
    def is_of_another_length(self) -> bool:
        """Does it vary how much longer or shorter it is than what runs over it?"""
        return self.pad.constant is None or self.rest.constant is None


@dataclass(eq=False)
class Memory:
    """
    axes:  outermost first; of what the launcher allocates, until a kernel says otherwise, its dimensions
    given: it is an input
    says_rows: its numbers say which rows of another tensor are read
    """

    name: str
    kind: str
    shape: tuple[Poly, ...]
    axes: tuple[Along, ...]
    given: bool
    line: int = 0
    written: list[int] = field(default_factory=list[int])
    """Numbers of the launches that write to it."""
    says_rows: bool = False


@dataclass(frozen=True)
class Pointers:
    memory: Memory
    offsets: Ints

    @property
    def shape(self) -> Shape:
        return self.offsets.shape


Tile = Ints | Bools | Floats | Pointers


def scalar(value: Poly | int) -> Ints:
    return Ints((), number(value) if isinstance(value, int) else value, ())


def as_ints(value: Any) -> Ints:
    match value:
        case bool():
            raise Unreadable("a truth value is used as an integer")
        case int():
            return scalar(value)
        case Ints():
            return value
        case Bools(shape, _, lanes):
            return Ints(shape, None, lanes)
        case Floats():
            raise Unreadable("a floating-point number is used as an integer")
        case _:
            raise Unreadable("an integer differs from pass to pass of a loop, or with the way that is taken")


def as_bools(value: Any) -> Bools:
    match value:
        case bool() | int():
            return Bools((), TRUE if value else FALSE, ())
        case Bools():
            return value
        case Ints() | Floats():
            return Bools(value.shape, None, nowhere(value.shape))
        case _:
            raise Unreadable("a pointer is used as a truth value")


def nowhere(shape: Shape) -> Lanes:
    return (frozenset[str](),) * len(shape)


def together(*tiles: Ints | Bools) -> tuple[Shape, Lanes]:
    """Shape and lanes of what is computed of them element by element."""
    shape: Shape = ()
    for tile in tiles:
        shape = common(shape, tile.shape)
    found = [set[str]() for _ in shape]
    for tile in tiles:
        for at, own in enumerate(tile.lanes, len(shape) - len(tile.lanes)):
            found[at] |= own
    lanes = tuple(frozenset(own) for own in found)
    if sum(len(own) for own in lanes) != len(frozenset[str]().union(*lanes)):
        raise Unreadable("one tl.arange runs along two dimensions of a tile")
    return shape, lanes


def stretched(tile: Tile, shape: Shape) -> Tile:
    """Broadcast."""
    if common(tile.shape, shape) != shape:
        raise Wrong("type", f"a tile of shape {list(tile.shape)} does not fit {list(shape)}")
    match tile:
        case Floats():
            return replace(tile, shape=shape)
        case Pointers(memory, offsets):
            found = stretched(offsets, shape)
            assert isinstance(found, Ints)
            return Pointers(memory, found)
        case _:
            lanes = (*nowhere(shape[: len(shape) - len(tile.shape)]), *tile.lanes)
            return replace(tile, shape=shape, lanes=lanes)


def rearranged(tile: Ints | Bools, how: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Ints | Bools:
    """how: of what each dimension has, (size, lanes)"""
    pairs = how(tuple(zip(tile.shape, tile.lanes, strict=True)))
    return replace(tile, shape=tuple(n for n, _ in pairs), lanes=tuple(own for _, own in pairs))

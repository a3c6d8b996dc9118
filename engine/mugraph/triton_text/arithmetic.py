"""Arithmetic of tiles, as Triton has it: integers and masks are numbers, floating-point ones elements of the fields."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import ELEMENTS
from mugraph.triton_text.compared import compared
from mugraph.triton_text.ints import REACH, Bools, Ints, Shape, every, number, times, total, truth
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tiles import (
    CODES,
    FLOATS,
    MADE,
    STORED_NAMES,
    UNKNOWN,
    Floats,
    Pointers,
    Tile,
    common,
    ends,
    is_known,
    of_shape,
    refuse_raw,
    triton_name,
)  # fmt: skip
from mugraph.verification.field import P, Q

_WIDTHS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (1, 8, 16, 32, 64)}
_NOT_READ = frozenset(("float8e4b8", "float8e5b16"))


class Arithmetic:
    """reals: None where only addresses are looked at. takes_tf32: numbers may be rounded to tf32"""

    def __init__(self, reals: Reals | None, *, takes_tf32: bool = True) -> None:
        self.reals, self._takes_tf32 = reals, takes_tf32

    def whole(self, value: Ints | Bools) -> NDArray[Any]:
        """All of it in one array."""
        return value.whole()

    def tile(self, value: Any, kind: str = "float32") -> Tile:
        """A number of Python as a tile without dimensions."""
        match value:
            case bool():
                return truth(value)
            case int():
                return number(value, "int32" if -(1 << 31) <= value < 1 << 31 else "int64")
            case float():
                return self.constant(value, kind)
            case Ints() | Bools() | Floats() | Pointers():
                return value
            case _:
                raise Unreadable(f"{type(value).__name__} is no number")

    def constant(self, value: float, kind: str = "float32") -> Floats:
        return Floats((), kind, None if self.reals is None else self.reals.constant(value, 0), value)

    def floats(self, value: Any, kind: str = "") -> Floats:
        """Integers and masks become the elements of the fields that they are."""
        if isinstance(value, int) and not isinstance(value, bool):
            return self.constant(float(value), kind or "float32")
        tile = self.tile(value)
        if isinstance(tile, Floats):
            return Floats(tile.shape, kind or tile.kind, tile.real, tile.known)
        if isinstance(tile, Pointers):
            raise Wrong("type", "a pointer is used as a number")
        if self.reals is None or not is_known(tile):
            return Floats(tile.shape, kind or "float32", None)
        whole = tile.whole().astype(np.int64)
        return Floats(tile.shape, kind or "float32", Real(whole % P, whole % Q if self.reals.field.with_q else None))

    def ints(self, value: Any, kind: str = "") -> Ints:
        tile = self.tile(value)
        match tile:
            case Ints():
                return Ints(tile.shape, tile.parts, kind or tile.kind)
            case Bools():
                whole = (self.whole(tile).astype(np.int64),) if is_known(tile) else UNKNOWN
                return Ints(tile.shape, whole, kind or "int32")
            case _:
                raise Unreadable("a floating-point number is used as an integer")

    def bools(self, value: Any) -> Bools:
        tile = self.tile(value)
        match tile:
            case Bools():
                return tile
            case Ints():
                return Bools(tile.shape, (self.whole(tile) != 0,) if is_known(tile) else UNKNOWN)
            case _:
                raise Unreadable("a floating-point number is used as a truth value")

    def binary(self, op: str, a: Any, b: Any) -> Tile:
        one, two = self.tile(a), self.tile(b)
        if isinstance(one, Pointers) or isinstance(two, Pointers):
            return self._moved(op, one, two)
        refuse_raw(one, two)
        shape = common(one.shape, two.shape)
        if op in ("<", "<=", ">", ">=", "==", "!="):
            return self._compared(op, one, two, shape)
        if isinstance(one, Floats) or isinstance(two, Floats) or op == "/":
            return self._of_floats(op, a, b, shape)
        if isinstance(one, Bools) and isinstance(two, Bools) and op in ("&", "|", "^", "*"):
            return self._of_bools(op, one, two, shape)
        return self.of_ints(op, self.ints(one), self.ints(two), shape)

    def held(self, value: Ints) -> Ints:
        """What a register holds: beyond its bits, an int32 has wrapped around. Sums and products need not know, as long
        as they have the same bits."""
        if value.kind != "int32" or not is_known(value):
            return value
        low, high = ends(value)
        if low >= -REACH and high < REACH:
            return value
        return Ints(value.shape, ((self.whole(value) + REACH) % (2 * REACH) - REACH,), value.kind)

    def of_ints(self, op: str, a: Ints, b: Ints, shape: Shape) -> Ints:
        kind = _wider(a, b)
        keeps = op in ("+", "-", "*")
        one, two = (of_shape(x if keeps and x.kind == kind else self.held(x), shape) for x in (a, b))
        assert isinstance(one, Ints)
        assert isinstance(two, Ints)
        if not is_known(one) or not is_known(two):
            return Ints(shape, (), kind)
        match op:
            case "+":
                return total(shape, [*one.parts, *two.parts], kind)
            case "-":
                return total(shape, [*one.parts, *(-part for part in two.parts)], kind)
            case "*":
                return times(one, two, shape, kind)
            case _:
                return Ints(shape, self._parts(op, one, two), kind)

    def _parts(self, op: str, a: Ints, b: Ints) -> tuple[NDArray[np.int64], ...]:
        """Of what is no sum and no product. a, b: of one shape"""
        return (_each(op, self.whole(a), self.whole(b)),)

    def _of_bools(self, op: str, a: Bools, b: Bools, shape: Shape) -> Bools:
        one, two = of_shape(a, shape), of_shape(b, shape)
        assert isinstance(one, Bools)
        assert isinstance(two, Bools)
        if not is_known(one) or not is_known(two):
            return Bools(shape, ())
        if op in ("&", "*"):
            return every(shape, [*one.parts, *two.parts])
        x, y = self.whole(one), self.whole(two)
        return Bools(shape, (x | y if op == "|" else x ^ y,))

    def _of_floats(self, op: str, a: Any, b: Any, shape: Shape) -> Floats:
        one, two = self.floats(a), self.floats(b)
        kind = _promoted(one, two, a, b)
        if op not in ("+", "-", "*", "/"):
            raise Unreadable(f"{op} of floating-point numbers is not read")
        if self.reals is None or one.real is None or two.real is None:
            return Floats(shape, kind, None)
        first, second = (of_shape(x, shape) for x in (one, two))
        assert isinstance(first, Floats)
        assert isinstance(second, Floats)
        x, y, reals = first.real, second.real, self.reals
        assert x is not None
        assert y is not None
        if one.known is not None and two.known is not None:
            return (
                self.constant(_folded(op, one.known, two.known), kind)
                if shape == ()
                else _filled(self.constant(_folded(op, one.known, two.known), kind), shape)
            )
        match op:
            case "+":
                found = reals.add(x, y)
            case "-":
                found = reals.add(x, reals.negative(y))
            case "*":
                found = reals.mul(x, y, one.known, two.known)
            case _:
                found = reals.div(x, y, two.known)
        return Floats(shape, kind, found)

    def _compared(self, op: str, a: Tile, b: Tile, shape: Shape) -> Bools:
        one, two = (of_shape(self.held(x) if isinstance(x, Ints) else x, shape) for x in (a, b))
        if isinstance(one, Floats) or isinstance(two, Floats):
            return self._floats_compared(op, self.floats(one), self.floats(two), shape)
        if isinstance(one, Pointers) or isinstance(two, Pointers):
            raise Unreadable("a comparison of pointers is not read")
        if not is_known(one) or not is_known(two):
            return Bools(shape, ())
        holds = _COMPARISONS[op]
        if op in ("<", "<=", ">", ">=") and isinstance(one, Ints) and isinstance(two, Ints):
            # As a rule a mask leaves something out in the last of many blocks alone.
            (low, high), (least, most) = ends(one), ends(two)
            always, ever = holds(high, least) and holds(low, most), holds(low, most) or holds(high, least)
            if always or not ever:
                return Bools(shape, (np.full((1,) * (len(shape) + 1), bool(always)),))
        x, y = (self.whole(value).astype(np.int64, copy=False) for value in (one, two))
        ordered = op in ("<", "<=", ">", ">=")
        return Bools(shape, (compared(holds, x, y) if ordered else holds(x, y),))

    def _floats_compared(self, op: str, a: Floats, b: Floats, shape: Shape) -> Bools:
        x, y, reals = a.real, b.real, self.reals
        if reals is None or x is None or y is None:
            return Bools(shape, ())
        rank = len(shape) + 1
        x, y = (v.each(lambda array: array.reshape((1,) * rank) if array.ndim < rank else array) for v in (x, y))
        match op:
            case "==":
                found = reals.equal(x, y)
            case "!=":
                found = ~reals.equal(x, y)
            case "<":
                found = reals.less(x, y)
            case ">":
                found = reals.less(y, x)
            case "<=":
                found = reals.less(x, y) | reals.equal(x, y)
            case _:
                found = reals.less(y, x) | reals.equal(x, y)
        return Bools(shape, (found,))

    def _moved(self, op: str, a: Tile, b: Tile) -> Pointers:
        pointers, moved = (a, b) if isinstance(a, Pointers) else (b, a)
        assert isinstance(pointers, Pointers)
        if isinstance(moved, Floats | Pointers) or op not in ("+", "-") or (op == "-" and pointers is b):
            raise Wrong("type", f"{op} is no operation on a pointer")
        shape = common(a.shape, b.shape)
        offsets, further = pointers.offsets, self.ints(moved)
        if "int64" in (
            offsets.kind,
            further.kind,
        ):  # an address has 64 bits; what is added to it may have wrapped around
            offsets, further = replace(offsets, kind="int64"), replace(self.held(further), kind="int64")
        return Pointers(pointers.memory, self.of_ints(op, offsets, further, shape))

    def negative(self, value: Tile) -> Tile:
        refuse_raw(value)
        match value:
            case Ints(shape, parts, kind):
                return Ints(shape, tuple(-part for part in parts), kind)
            case Floats(shape, kind, real, known):
                known = None if known is None else -known
                return Floats(
                    shape, kind, None if self.reals is None or real is None else self.reals.negative(real), known
                )
            case _:
                raise Wrong("type", "a minus stands before what is no number")

    def inverted(self, value: Tile) -> Tile:
        match value:
            case Bools(shape, parts):
                return Bools(shape, (~self.whole(value),) if parts else ())
            case Ints(shape, parts, kind):
                return Ints(shape, (~self.whole(value),) if parts else (), kind)
            case _:
                raise Wrong("type", "~ stands before a floating-point number")

    def cast(self, value: Any, kind: str) -> Tile:
        tile = self.tile(value)
        kind = triton_name(CODES[kind].stored) if kind in CODES else kind
        if isinstance(tile, Floats) and tile.kind in MADE.values() and MADE.get(kind) != tile.kind:
            raise Unreadable("what was converted to whole numbers is computed with")
        if kind in FLOATS:
            if isinstance(tile, Floats):
                if kind in CODES and STORED_NAMES.get(tile.kind) != STORED_NAMES[kind]:
                    return self._code(tile, kind)
                if kind in _NOT_READ:
                    raise Unreadable(f"a conversion to {kind} is not read")
                if tile.kind in CODES and self.reals is not None and tile.real is not None:
                    self.reals.codes(STORED_NAMES[tile.kind]).update(np.unique(tile.real.p).tolist())
                return Floats(tile.shape, kind, tile.real, tile.known)
            return self.floats(tile, kind)
        if kind == "int1":
            return self.binary("!=", tile, 0.0) if isinstance(tile, Floats) else self.bools(tile)
        if isinstance(tile, Pointers):
            return tile
        if isinstance(tile, Floats) and kind in MADE:
            return Floats(tile.shape, MADE[kind], tile.real)
        if isinstance(tile, Floats):
            raise Unreadable("a floating-point number is converted to an integer")
        return self.ints(self.held(tile) if isinstance(tile, Ints) and kind != tile.kind else tile, kind)

    def _code(self, tile: Floats, kind: str) -> Floats:
        """As GPUs convert to eight bits: what is larger than the largest number becomes that one. What has been such a
        number before stays what it is."""
        rounds = CODES[kind]
        if self.reals is None or tile.real is None:
            return Floats(tile.shape, kind, None)
        most, reals, rank = ELEMENTS[rounds.stored].largest, self.reals, tile.real.p.ndim - 1
        clamped = tile.real
        if reals.clamps:
            reals.has_clamped = True
            clamped = reals.maximum(clamped, reals.constant(-most, rank), propagate=True)
            clamped = reals.minimum(clamped, reals.constant(most, rank), propagate=True)
        known = np.isin(tile.real.p, [0, *reals.codes(rounds.stored)])
        return Floats(tile.shape, kind, reals.chosen(known, tile.real, reals.opaque(rounds, clamped)))

    def to_tf32(self, tile: Floats) -> Floats:
        """Over the fields it is the number."""
        if not self._takes_tf32:
            raise Wrong("precision", "float32 numbers are rounded to tf32, which the program does not let be")
        return tile

    def stored(self, value: Any, kind: str) -> Floats:
        """What memory of this type holds then. A whole number of eight bits is what it is: that it is whole, and in
        range, the program says to which it is compared (surveyed.py)."""
        tile = self.tile(value)
        if kind in CODES and isinstance(tile, Floats):
            found = self.cast(tile, triton_name(CODES[kind].stored))
            assert isinstance(found, Floats)
            return Floats(found.shape, kind, found.real, found.known)
        return self.floats(value, kind)

    def chosen(self, where: Bools, a: Any, b: Any) -> Tile:
        one, two = self.tile(a), self.tile(b)
        if isinstance(one, Pointers) or isinstance(two, Pointers):
            raise Unreadable("tl.where of pointers is not read")
        shape = common(where.shape, common(one.shape, two.shape))
        mask = of_shape(where, shape)
        assert isinstance(mask, Bools)
        if isinstance(one, Floats) or isinstance(two, Floats):
            first, second = self.floats(one), self.floats(two)
            kind = _promoted(first, second, a, b)
            x, y = (of_shape(v, shape) for v in (first, second))
            assert isinstance(x, Floats)
            assert isinstance(y, Floats)
            if self.reals is None or x.real is None or y.real is None or not is_known(mask):
                return Floats(shape, kind, None)
            return Floats(shape, kind, self.reals.chosen(mask.whole(), x.real, y.real))
        if isinstance(one, Bools) and isinstance(two, Bools):
            x, y = (of_shape(v, shape) for v in (one, two))
            assert isinstance(x, Bools)
            assert isinstance(y, Bools)
            known = is_known(x) and is_known(y) and is_known(mask)
            return Bools(shape, (np.where(*map(self.whole, (mask, x, y))),) if known else ())
        first, second = (of_shape(self.ints(v), shape) for v in (one, two))
        assert isinstance(first, Ints)
        assert isinstance(second, Ints)
        known = is_known(first) and is_known(second) and is_known(mask)
        whole = (np.where(*map(self.whole, (mask, first, second))),) if known else ()
        return Ints(shape, whole, _wider(first, second))


def _filled(tile: Floats, shape: Shape) -> Floats:
    found = of_shape(tile, shape)
    assert isinstance(found, Floats)
    return found


def _folded(op: str, a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        return float(x + y if op == "+" else x - y if op == "-" else x * y if op == "*" else x / y)


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _wider(a: Ints, b: Ints) -> str:
    return a.kind if _WIDTHS.get(a.kind, 32) >= _WIDTHS.get(b.kind, 32) else b.kind


def _promoted(one: Floats, two: Floats, a: Any, b: Any) -> str:
    """A number of Python takes the type of what it meets, and so do integers."""
    if not isinstance(a, Floats) or not isinstance(b, Floats):
        return two.kind if not isinstance(a, Floats) else one.kind
    if one.kind == two.kind:
        return one.kind
    wide = [kind for kind in ("float64", "float32") if kind in (one.kind, two.kind)]
    return wide[0] if wide else "float32"


def _each(op: str, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Division is towards zero, as in C."""
    match op:
        case "//" | "%":
            if (b == 0).any():
                raise Wrong("values", "an integer is divided by zero")
            quotient = np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
            return quotient if op == "//" else a - quotient * b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << b
        case ">>":
            return a >> b
        case "max":
            return np.maximum(a, b)
        case "min":
            return np.minimum(a, b)
        case _:
            raise Unreadable(f"{op} of integers is not read")

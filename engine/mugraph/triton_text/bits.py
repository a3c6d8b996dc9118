"""Does a text round where PyTorch rounds? Elements stand for how they were computed, not for what they are.

Every operation of IEEE 754 is a random function of its operands here, and so is a rounding to a narrower type: two
elements are equal where they were computed by the same operations in the same order, up to the order of two operands.
No law of real numbers is known. Maxima, minus signs and moves of elements round nothing.

An element is a pair as over the fields (reals.py): a residue, and whether it is a number of the program's type (1) or
one of float32 that has yet to be rounded to it (0).

Where a compiler may choose, nothing is claimed: a product that is added without a rounding between may become one
operation, and a quotient or a root may be an approximation.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import READ, DType
from mugraph.ir.ops import Kind
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.ints import Shape
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.tiles import Floats, Tile
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.mixing import joined
from mugraph.verification.primes import P

_SINGLE = "float32"


class NotSame(Unreadable):
    """It is not known to have the same bits; the message says why, in a clause."""


class BitField(FieldArithmetic):
    """As PyTorch computes a program of one type: each operator alone, in float32, its result rounded to the type.

    dtype: of all its tensors
    drops_nan: a maximum or a comparison may make another thing of NaN
    chooses: there is one, of which 0 and -0 may come out as either
    """

    def __init__(self, rng: np.random.Generator, dtype: DType) -> None:
        super().__init__(rng, 1)
        self.dtype: DType = dtype
        self.drops_nan = self.chooses = False
        self._products: list[NDArray[np.int64]] = []

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FieldValue:
        p = rng.integers(1, P, (1, *shape), dtype=np.int64)
        return FieldValue(p, np.ones_like(p))

    def constant(self, value: float, rank: int) -> FieldValue:
        with np.errstate(over="ignore"):
            held = float(np.float32(value))
        if not isfinite(held):
            raise NotSame(f"the number {value:g} is none of float32")
        if not is_held(value, self.dtype):
            raise NotSame(f"the number {value:g} is none of {READ[self.dtype].torch}")
        p, _ = self._oracle(f"number {abs(held).hex()}", np.zeros((1,) * (rank + 1), np.uint64))
        p = np.where(p == 0, 1, p) if held else np.zeros_like(p)
        return FieldValue(-p % P if held < 0 else p, np.ones_like(p))

    def add(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self.rounded(self.sum_of(a, b))

    def mul(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self.rounded(self.product_of(a, b))

    def sum_of(self, a: FieldValue, b: FieldValue) -> FieldValue:
        """In float32."""
        if not a.p.all() or not b.p.all():
            raise NotSame("a zero is added, and 0 and -0 are not told apart")
        return self._operation("a sum", a, b)

    def product_of(self, a: FieldValue, b: FieldValue) -> FieldValue:
        """In float32; times one or minus one, nothing is rounded."""
        for one, other in ((a, b), (b, a)):
            for sign in (1, -1):
                if one.p.size == 1 and int(one.p.flat[0]) == int(self.constant(float(sign), 0).p.flat[0]):
                    return other if sign == 1 else self.minus(other)
        (one, turned), (other, again) = _unsigned(a.p), _unsigned(b.p)
        found = self._operation("a product", FieldValue(one, a.q), FieldValue(other, b.q))
        found = FieldValue(np.where(turned ^ again, -found.p % P, found.p), found.q)
        self._products.append(np.unique(found.p))
        return found

    def is_product(self, a: FieldValue) -> bool:
        """Is any element a product that nothing has rounded to another type?"""
        sizes = (a.p, -a.p % P)
        return any(np.isin(size, known).any() for known in self._products for size in sizes)

    def minus(self, a: FieldValue) -> FieldValue:
        return FieldValue(-a.p % P, a.q)

    def rounded(self, a: FieldValue) -> FieldValue:
        """To the program's type; what is a number of it stays as it is."""
        assert a.q is not None
        if a.q.all():
            return a
        size, turned = _unsigned(a.p)  # -x is rounded to minus what x is
        other, _ = self._oracle("rounded", size.astype(np.uint64))
        other = np.where(turned, -other % P, other)
        return FieldValue(np.where(a.q == 1, a.p, other), np.ones_like(a.q))

    def places(self, a: FieldValue) -> NDArray[np.uint64]:
        """Rounding keeps the order: the larger of two numbers is rounded to the larger of the rounded ones."""
        return super().places(self.rounded(a))

    def maximum(self, a: FieldValue, b: FieldValue) -> FieldValue:
        self.chooses = True
        return self.chosen(self.places(a) >= self.places(b), a, b)

    def amax(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        self.chooses = True
        for position in over:
            at = np.expand_dims(self.places(a).argmax(position), position)
            a = self.rearrange(a, lambda array, at=at, along=position: np.take_along_axis(array, at, along))
        return a

    def unary(self, fn: str, a: FieldValue) -> FieldValue:
        match fn:
            case "relu":
                return self.maximum(a, self.constant(0.0, a.p.ndim - 1))
            case "abs":
                p, _ = self._oracle("size", _unsigned(a.p)[0].astype(np.uint64))
                return FieldValue(p, a.q)
            case _:
                raise NotSame(f"{fn} is computed in more than one way")

    def div(self, a: FieldValue, b: FieldValue) -> FieldValue:
        raise NotSame("it divides, which a kernel may do by an approximation")

    def sqrt(self, a: FieldValue) -> FieldValue:
        raise NotSame("it takes a root, which a kernel may do by an approximation")

    def exp(self, a: FieldValue) -> FieldValue:
        raise NotSame("exp is computed in more than one way")

    def opaque(self, kind: Kind, *operands: FieldValue) -> FieldValue:
        raise NotSame(f"{kind.name} is computed in more than one way")

    def sum(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        raise NotSame("it adds up elements, and PyTorch's order is not known")

    def dot(self, a: FieldValue, b: FieldValue, over: tuple[int, ...]) -> FieldValue:
        raise NotSame("it adds up products, and PyTorch's order is not known")

    def running(self, a: FieldValue, over: tuple[int, ...], backwards: bool) -> FieldValue:
        raise NotSame("it adds up elements, and PyTorch's order is not known")

    def indicator(self, where: NDArray[np.bool_]) -> FieldValue:
        raise NotSame("it multiplies by a mask")

    def whole(self, numbers: NDArray[np.int64]) -> FieldValue:
        raise NotSame("it computes with places along an axis")

    def _operation(self, name: str, a: FieldValue, b: FieldValue) -> FieldValue:
        assert a.q is not None
        assert b.q is not None
        words = np.broadcast_arrays(a.p.astype(np.uint64), b.p.astype(np.uint64))
        p, _ = self._oracle(name, joined(words, commutes=True))
        p = np.where(p == 0, 1, p)
        return FieldValue(p, np.full_like(p, int(self.dtype == "f32")))


class Bits(Reals):
    """The same, of the values that a text computes."""

    def __init__(self, field: BitField) -> None:
        super().__init__(field)
        self.bits = field

    def constant(self, value: float, rank: int) -> Real:
        if not isfinite(value):
            return super().constant(value, rank)
        found = self.bits.constant(value, rank)
        return Real(found.p, found.q)

    def add(self, a: Real, b: Real) -> Real:
        one, other = _value(a), _value(b)
        if self.bits.is_product(one) or self.bits.is_product(other):
            raise NotSame("a product is added without a rounding between: a compiler may make them one operation")
        return self._real(self.bits.sum_of(one, other), a, b)

    def mul(self, a: Real, b: Real, sign_a: float | None = None, sign_b: float | None = None) -> Real:
        return self._real(self.bits.product_of(_value(a), _value(b)), a, b)

    def negative(self, a: Real) -> Real:
        turned = super().negative(a)
        return Real(turned.p, a.q, turned.state)

    def rounded(self, a: Real) -> Real:
        return self._real(self.bits.rounded(_value(a)), a, a)

    def div(self, a: Real, b: Real, sign_b: float | None = None) -> Real:
        raise NotSame("it divides, which a kernel may do by an approximation")

    def unary(self, fn: str, a: Real) -> Real:
        return self._real(self.bits.unary(fn, _value(a)), a, a)

    def sum(self, a: Real, axis: int, size: int) -> Real:
        raise NotSame("it adds up elements, and PyTorch's order is not known")

    def cumsum(self, a: Real, axis: int) -> Real:
        raise NotSame("it adds up elements, and PyTorch's order is not known")

    def dot(self, a: Real, b: Real) -> Real:
        raise NotSame("it adds up products, and PyTorch's order is not known")

    def less(self, a: Real, b: Real) -> NDArray[np.bool_]:
        self.bits.drops_nan = self.bits.chooses = True
        return super().less(a, b)

    def equal(self, a: Real, b: Real) -> NDArray[np.bool_]:
        self.bits.drops_nan = True
        found = super().equal(a, b)
        if not found.all():
            raise NotSame("it compares numbers that may be equal though they are computed in other ways")
        return found

    def maximum(self, a: Real, b: Real, *, propagate: bool) -> Real:
        self.bits.chooses = True
        self.bits.drops_nan |= not propagate
        return super().maximum(a, b, propagate=propagate)

    def amax(self, a: Real, axis: int, *, propagate: bool = False) -> Real:
        self.bits.chooses = True
        self.bits.drops_nan |= not propagate
        return super().amax(a, axis, propagate=propagate)

    def _real(self, found: FieldValue, a: Real, b: Real) -> Real:
        if a.state is not None or b.state is not None:
            raise NotSame("it computes with what is no number")
        assert found.q is not None
        return Real(found.p[0], found.q[0])


class BitArithmetic(Arithmetic):
    """Arithmetic of tiles, with its types."""

    def __init__(self, reals: Bits) -> None:
        super().__init__(reals)
        self._bits = reals
        self._own = READ[reals.bits.dtype].torch

    def floats(self, value: Any, kind: str = "") -> Floats:
        if not isinstance(value, int) and not isinstance(self.tile(value), Floats):
            raise NotSame("whole numbers are computed with")
        return super().floats(value, kind)

    def _of_floats(self, op: str, a: Any, b: Any, shape: Shape) -> Floats:
        return self._rounded(super()._of_floats(op, a, b, shape))

    def cast(self, value: Any, kind: str) -> Tile:
        found = super().cast(value, kind)
        return self._rounded(found) if isinstance(found, Floats) else found

    def to_tf32(self, tile: Floats) -> Floats:
        raise NotSame("it rounds to tf32")

    def stored(self, value: Any, kind: str) -> Floats:
        return self._rounded(super().stored(value, kind))

    def _rounded(self, tile: Floats) -> Floats:
        """To the type that the tile has."""
        if tile.kind == _SINGLE or tile.real is None or tile.known is not None:
            return tile
        if tile.kind != self._own:
            raise NotSame(f"it computes in {tile.kind}")
        return Floats(tile.shape, tile.kind, self._bits.rounded(tile.real))


def is_held(value: float, dtype: DType) -> bool:
    """Is it a number of the type? In float32 any is taken as the nearest: so do PyTorch and Triton."""
    if dtype == "f32":
        return True
    mantissa, exponent = np.frexp(value)
    digits = 1 - int(np.log2(READ[dtype].epsilon)) - 1
    whole = float(mantissa) * 2.0**digits
    return whole == int(whole) and abs(value) <= READ[dtype].largest and (not value or exponent > _LEAST_EXPONENT)


_LEAST_EXPONENT = -13
"""Of a normal float16, as frexp counts."""


def _unsigned(p: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Of x and -x always the same one, and where it is the other."""
    turned = p > P // 2
    return np.where(turned, P - p, p), turned


def _value(a: Real) -> FieldValue:
    return FieldValue(a.p[None], None if a.q is None else a.q[None])

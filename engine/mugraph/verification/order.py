"""Random total orders of a field's elements: what a maximum means over finite fields.

A field has no order of its own, so each seed draws one: elements are compared by a keyed 64-bit hash of their residue
modulo P. It is a total order (the hash is a bijection, so no two elements tie), the same everywhere in one seed. A
maximum in it is associative, commutative and idempotent, in whatever tiles and loops it is taken, and nothing else is
known of it: that adding, or multiplying by a positive number, keeps the real order is lost. A right graph that needs
such a law is rejected; none that the tests accept needs one.

By sign. The squares of the field are its positive numbers: products and quotients of positive numbers are positive,
those of a positive and a negative one are negative, and P is 3 mod 4, so of x and -x one is positive. Which sums are
positive is random, as which elements are larger is. In an order by sign the negative elements come first, then 0, then
the positive ones; so max(x, 0) is x or 0, 2 max(x, 0) is max(2x, 0) and max(x, -x) is sqrt(x x). What holds for all
signs and orders of this kind holds for those of the real numbers.

Soundness. Let two graphs differ as functions of real numbers, and take inputs at which they do. The real order of the
m values that enter maxima there is one of their m! orders, and under it both graphs are rational functions, which
differ. A seed draws that order with a chance of 1 / m!, whatever the values are, and at random inputs under it two
different rational functions of degree d agree with a chance of d / P at most (Schwartz and Zippel). So a seed finds
the difference with a chance of at least (1 - d / P) / m!. This is for an element where a single order tells; as a rule
most orders do. max(x, 0) is not x wherever 0 comes after x: of n elements one is enough, and a seed finds none only
where 0 comes before all of them, with a chance of 1 / (n + 1). Hence more
seeds than for other programs, and no bound is claimed: Theorem 2 does not cover maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.verification import modular
from mugraph.verification.mixing import mix
from mugraph.verification.modular import Residues
from mugraph.verification.primes import P

REPETITIONS_OF_MAXIMA = 16
"""Seeds at each of the two sizes: max(x, 0) passes for x, of four elements or more, with a chance below 5^-32."""

_Number = TypeVar("_Number", np.int64, np.uint64)
_MANY = 16
"""Elements, of which an index is found of the last one."""
_HALF = np.uint64(1 << 63)
_TAG = np.uint64(0xD6E8FEB86659FD93)
"""Tells the order from the random functions of the same seed."""


def is_positive(residues: Residues) -> NDArray[np.bool_]:
    """Whether they are squares other than 0."""
    return modular.is_square(residues, P) & (residues != 0)


def later(a: Residues, b: Residues, keys: NDArray[np.uint64], by_sign: bool = False) -> NDArray[np.bool_]:
    """Where `a` is `b` or comes after it. keys: [repetitions]"""
    return places(a, keys, by_sign) >= places(b, keys, by_sign)


def last(arrays: Sequence[Residues], where: NDArray[np.uint64], over: Sequence[int]) -> list[Residues]:
    """Of arrays of one shape, the elements that come last along some positions, which are kept with size 1.

    where: what `places` says of the elements
    """
    found = list(arrays)
    for position in over:
        count = where.shape[position]
        if count > _MANY:
            index = np.expand_dims(where.argmax(position), position)
            found = [np.take_along_axis(array, index, position) for array in found]
            where = np.take_along_axis(where, index, position)
            continue
        # Element by element: of few, an index of each costs ten times as much.
        most, best = _at(where, 0, position), [_at(array, 0, position) for array in found]
        for number in range(1, count):
            other = _at(where, number, position)
            is_later = other > most
            np.copyto(most, other, where=is_later)
            for array, whole in zip(best, found, strict=True):
                np.copyto(array, _at(whole, number, position), where=is_later)
        where, found = most, best
    return found


def _at(array: NDArray[_Number], number: int, position: int) -> NDArray[_Number]:
    """A copy of what is at one place of a position, which is kept."""
    return array.take([number], position)


def places(residues: Residues, keys: NDArray[np.uint64], by_sign: bool) -> NDArray[np.uint64]:
    """A number for each element, the larger the later it comes."""
    own = keys.reshape((-1,) + (1,) * (residues.ndim - 1))
    mixed = mix(mix(residues.astype(np.uint64) ^ own) ^ _TAG)
    if not by_sign:
        return mixed
    found = (mixed >> np.uint64(2)) + np.where(is_positive(residues), _HALF, np.uint64(1))
    return np.where(residues == 0, _HALF - np.uint64(1), found)

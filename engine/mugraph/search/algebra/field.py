"""Arithmetic over the finite fields of Mirage §5, on small numpy arrays.

p = 2q + 1, both primes, both 3 mod 4. A value has a component mod p and, where it may come under an exp, one mod q:
exp(x) = omega^(x mod q) mod p is then a homomorphism from addition mod q to multiplication mod p. Products of two
residues fit in int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

P = 2147481143
Q = 1073740571
OMEGA = 4
"""A square other than 1, so its order mod P is exactly Q."""

Residues = NDArray[np.int64]

_ORDER = 0x5DEECE66D
"""Salt of the order of residues; no function has it."""
_JOINED = 0x2545F4914F6CDD1E
"""Salt of arguments that are joined; no function has it."""


@lru_cache(maxsize=1)
def _powers() -> tuple[Residues, Residues]:
    """OMEGA^i and OMEGA^(i * 2^15) for i < 2^15: two look-ups give any power below 2^30."""

    def table(base: int) -> Residues:
        powers = np.ones(1, np.int64)
        while len(powers) < 1 << 15:
            powers = np.concatenate([powers, powers * pow(base, len(powers), P) % P])
        return powers

    return table(OMEGA), table(pow(OMEGA, 1 << 15, P))


def power_of_omega(exponent: Residues) -> Residues:
    """OMEGA^exponent mod P, exponents in [0, Q)."""
    low, high = _powers()
    return low[exponent & 0x7FFF] * high[exponent >> 15] % P


def inverse(x: Residues, modulus: int) -> Residues | None:
    """1 / x, or None where an element is zero."""
    flat: list[int] = x.ravel().tolist()
    if 0 in flat:
        return None
    return np.array([pow(v, -1, modulus) for v in flat], np.int64).reshape(x.shape)


def square_root(x: Residues, modulus: int) -> Residues:
    """x^((modulus + 1) / 4): multiplicative on all of the field, so sqrt(x) sqrt(y) == sqrt(x y) always holds."""
    exponent = (modulus + 1) // 4
    flat: list[int] = x.ravel().tolist()
    return np.array([pow(v, exponent, modulus) for v in flat], np.int64).reshape(x.shape)


def places(x: Residues) -> NDArray[np.uint64]:
    """An order of the residues that has nothing to do with their arithmetic: what comes last is the largest."""
    return _mixed(x, _ORDER)


def later(a: Residues, b: Residues) -> NDArray[np.bool_]:
    """Where `a` is `b` or comes after it."""
    return places(a) >= places(b)


def last(x: Residues, *, by: Residues, slots: tuple[int, ...]) -> Residues:
    """`x` where `by` comes last along the slots, which are kept with size 1."""
    for slot in slots:
        index = np.expand_dims(places(by).argmax(slot), slot)
        x, by = np.take_along_axis(x, index, slot), np.take_along_axis(by, index, slot)
    return x


def oracle(x: Residues, salt: int, modulus: int) -> Residues:
    """A keyed 64-bit mix: the random function that stands for an operator nothing is known of."""
    return (_mixed(x, salt) % np.uint64(modulus)).astype(np.int64)


def joined(parts: Sequence[Residues], commutes: bool) -> Residues:
    """One word for all of them, in this order or, where they commute, in any: what an oracle is asked with."""
    if commutes:
        parts = (reduce(np.minimum, parts), reduce(np.maximum, parts))
    word = parts[0]
    for part in parts[1:]:
        word = _mixed(word, _JOINED).astype(np.int64) + part
    return word


def running_sums(x: NDArray[Any], slots: tuple[int, ...], backwards: bool) -> NDArray[Any]:
    """Of the elements up to each place; backwards: from each place on. slots: an axis's tile, and then its iterations
    where it is looped, which count its tiles"""
    moved = np.moveaxis(x, slots[::-1], range(-len(slots), 0))
    flat = moved.reshape(*moved.shape[: x.ndim - len(slots)], -1)
    turned = flat[..., ::-1] if backwards else flat
    sums = turned.cumsum(-1)
    found = (sums[..., ::-1] if backwards else sums).reshape(moved.shape)
    return np.moveaxis(found, range(-len(slots), 0), slots[::-1])


def _mixed(x: Residues, salt: int) -> NDArray[np.uint64]:
    z = x.astype(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""The two primes of the fields, and constants as elements of them.

P = 2Q + 1 with both 3 mod 4, as Mirage §5.2 asks, and every prime below 30 is a square in both (so are 43, 67, 71, 73,
83 and 97): of a number made of such primes the root of its square is the number itself and never its negative, so that
sqrt(25 s) = 5 sqrt(s) holds. Such a prime stands for itself.

What has no root in the fields, and what is no whole number (pi, a large prime), is a random element of its own in each
seed: an identity is shown for every such number. Where signs matter it is a fourth power, which has a root that has a
root: a positive number. Where they do not, a small prime is itself even so, and 0.41 + 0.59 is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from mugraph.verification.constants import Base, Constant

P = 1_940_566_319
Q = 970_283_159
_EXACT = 1 << 15  # two fractions of such numbers are never the same residue without being equal


def elements(
    constant: Constant, prime: int, repetitions: int, drawn: Callable[[Base], Sequence[int]], *, signed: bool
) -> list[int]:
    """Elements that bases stand for, one for each seed.

    drawn:  a random element of each seed for a base, none of them 0
    signed: roots, maxima or absolute values occur, so what is positive must be a square
    """
    found = [constant.sign % prime] * repetitions
    for base, halves in constant.halves:
        if _is_exact(base, halves, signed):
            factor = _exact(int(base), halves, prime)
            found = [x * factor % prime for x in found]
        else:
            power = halves * (2 if signed else 1)
            found = [x * pow(r, power, prime) % prime for x, r in zip(found, drawn(base), strict=True)]
    return found


def random_powers(constant: Constant) -> list[tuple[Base, int]]:
    """A constant as a product of powers of random elements, where signs do not matter: base, twice its exponent."""
    return [(base, halves) for base, halves in constant.halves if not _is_exact(base, halves, signed=False)]


def _is_exact(base: Base, halves: int, signed: bool) -> bool:
    if isinstance(base, str) or base >= _EXACT:
        return False
    return _has_roots(base) or (not signed and halves % 2 == 0)


@lru_cache(maxsize=4096)
def _has_roots(base: int) -> bool:
    return all(pow(base, (prime - 1) // 2, prime) == 1 for prime in (P, Q))


def _exact(base: int, halves: int, prime: int) -> int:
    if halves % 2 == 0:
        return pow(base, halves // 2, prime)
    return pow(pow(base, (prime + 1) // 4, prime), halves, prime)

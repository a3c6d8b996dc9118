"""Arithmetic over the pair of fields (Z_p, Z_q) of Mirage §5.2, many random seeds at once.

p = 2q + 1, both prime and both 3 mod 4. A value is a pair (x_p, x_q); exp takes x_q to omega^(x_q) in Z_p, where omega
is a q-th root of unity, and leaves no Z_q component. Everything random (omega, constants, oracles) differs from seed to
seed: position 0 of every array runs over the seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.ops.functions.by_erf import ERF, GELU, gelu_by_erf
from mugraph.ops.functions.by_sign import BY_SIGN, MAX
from mugraph.ops.functions.through_exp import SIGMOID, form
from mugraph.verification import modular, order
from mugraph.verification.arithmetic import Index, Rearrange, assemble_arrays, running_sums
from mugraph.verification.constants import Base, read
from mugraph.verification.mixing import joined, mix
from mugraph.verification.modular import Residues, mod
from mugraph.verification.primes import P, Q, elements

__all__ = ["FieldArithmetic", "FieldValue", "P", "Q"]

_Q_BITS = 30


@dataclass(frozen=True, slots=True)
class FieldValue:
    """p: residues mod P. q: residues mod Q of the same shape, absent after an exp."""

    p: Residues
    q: Residues | None


class FieldArithmetic:
    """The operators of Mirage's Table 3, random oracles for other functions, and random orders for maxima.

    repetitions: independent seeds
    with_q:      give constants (and oracles) a Z_q component; without exp nothing reads it
    by_form:     functions that are computed by their forms (through_exp.py) or by signs (by_sign.py); of all
                 others nothing is known
    signed:      signs matter: what is positive must be a square (a positive constant is one)
    valid:       [repetitions] False for the seeds that met a zero denominator: their results mean nothing
    second_exp:  an exp was taken of a value that already passed one: outside the Lax fragment
    """

    def __init__(
        self,
        rng: np.random.Generator,
        repetitions: int,
        with_q: bool = True,
        by_form: Collection[str] = frozenset(),
        signed: bool = True,
    ) -> None:
        self.repetitions = repetitions
        self.with_q = with_q
        self.by_form = by_form
        self.signed = signed
        self._by_sign = MAX in by_form
        self.valid: NDArray[np.bool_] = np.ones(repetitions, np.bool_)
        self.second_exp = False
        # The squares are the q-th roots of unity, because p - 1 = 2q.
        root = rng.integers(1, P, repetitions, dtype=np.int64)
        self._omega = root * root % P
        self._keys = rng.integers(0, 1 << 64, repetitions, dtype=np.uint64, endpoint=False)
        self._tables: Residues | None = None
        # Few seeds: two tables of 2^15 entries; many: five of 2^6, which cost more products but little to fill.
        self._window = 15 if repetitions <= 2 else 6

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FieldValue:
        """Uniform values of shape [repetitions, *shape]."""
        whole = (self.repetitions, *shape)
        q = rng.integers(0, Q, whole, dtype=np.int64) if self.with_q else None
        return FieldValue(rng.integers(0, P, whole, dtype=np.int64), q)

    def draw_flat(self, rng: np.random.Generator, count: int) -> tuple[Residues, Residues | None]:
        """As many uniform values."""
        q = rng.integers(0, Q, count, dtype=np.int64) if self.with_q else None
        return rng.integers(0, P, count, dtype=np.int64), q

    def selected(self, seeds: NDArray[np.intp]) -> FieldArithmetic:
        """These of the seeds, in this order; which are valid is kept apart."""
        again = copy(self)
        again.repetitions = len(seeds)
        again.valid, again._omega, again._keys = self.valid[seeds], self._omega[seeds], self._keys[seeds]
        again._tables, again._window = None, 6
        return again

    def constant(self, value: float, rank: int) -> FieldValue:
        """The same element wherever and by whatever route it was computed (constants.py, primes.py): 0.1 * 0.1 is 0.01,
        and sqrt(m^2) is m of every positive m."""
        constant, shape = read(value), (self.repetitions,) + (1,) * rank
        p, q = (
            elements(constant, prime, self.repetitions, lambda base, of=of: self._drawn(base)[of], signed=self.signed)
            for of, prime in enumerate((P, Q))
        )
        whole = (np.array(residues, np.int64).reshape(shape) for residues in (p, q))
        return FieldValue(next(whole), next(whole) if self.with_q else None)

    def indicator(self, where: NDArray[np.bool_]) -> FieldValue:
        """1 where it is true, else 0: exact in both fields."""
        p = np.broadcast_to(where, (self.repetitions, *where.shape[1:])).astype(np.int64)
        return FieldValue(p, p if self.with_q else None)

    def whole(self, numbers: NDArray[np.int64]) -> FieldValue:
        """Each is itself, whatever stands for constants (primes.py)."""
        both = np.broadcast_to(numbers, (self.repetitions, *numbers.shape[1:]))
        return FieldValue(mod(both, P), mod(both, Q) if self.with_q else None)

    def add(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return FieldValue(mod(a.p + b.p, P), None if a.q is None or b.q is None else mod(a.q + b.q, Q))

    def mul(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return FieldValue(mod(a.p * b.p, P), None if a.q is None or b.q is None else mod(a.q * b.q, Q))

    def div(self, a: FieldValue, b: FieldValue) -> FieldValue:
        self._reject(b.p == 0)
        if a.q is None or b.q is None:
            return FieldValue(mod(a.p * modular.inverse(b.p, P), P), None)
        self._reject(b.q == 0)
        return FieldValue(mod(a.p * modular.inverse(b.p, P), P), mod(a.q * modular.inverse(b.q, Q), Q))

    def sqrt(self, a: FieldValue) -> FieldValue:
        return FieldValue(modular.square_root(a.p, P), None if a.q is None else modular.square_root(a.q, Q))

    def exp(self, a: FieldValue) -> FieldValue:
        if a.q is None:
            self.second_exp = True
            _, exponent = self._oracle("exp", a.p.astype(np.uint64))
        else:
            exponent = a.q
        return FieldValue(self._omega_to(exponent), None)

    def unary(self, fn: str, a: FieldValue) -> FieldValue:
        """A random function of the value: equal arguments agree, and nothing else is known of it, but that relu and abs
        are never negative. Or what it is by sign, or by its form, a sigmoid where the value has not passed an exp."""
        if fn in self.by_form and fn in BY_SIGN:
            # The sign of both components is that of the first, as of a maximum.
            other = self.rearrange(a, np.zeros_like) if fn == "relu" else self._negative(a)
            return self.chosen(order.is_positive(a.p), a, other)
        if fn in self.by_form and fn == GELU:
            return gelu_by_erf(a, self, lambda value: self.constant(value, a.p.ndim - 1))
        if fn in self.by_form and fn == ERF:
            positive = order.is_positive(a.p)
            size = self._function(fn, self.chosen(positive, a, self._negative(a)))
            return self.chosen(positive, size, self._negative(size))
        if fn in self.by_form and (fn != SIGMOID or a.q is not None):
            return form(fn, a, self, lambda value: self.constant(value, a.p.ndim - 1))
        return self._function(fn, a)

    def opaque(self, kind: Kind, *operands: FieldValue) -> FieldValue:
        """A random function of the values, 0 where the kind says that it is."""
        found = self._function(kind.name, *operands, commutes=kind.commutes)
        if kind.opaque is None or not kind.opaque.vanishes:
            return found
        some = reduce(np.logical_or, map(self._is_zero, operands))
        return self.chosen(~some, found, self.rearrange(found, np.zeros_like))

    @staticmethod
    def _is_zero(a: FieldValue) -> NDArray[np.bool_]:
        return (a.p == 0) if a.q is None else (a.p == 0) & (a.q == 0)

    def _function(self, fn: str, *operands: FieldValue, commutes: bool = False) -> FieldValue:
        """A random one."""
        seconds = [a.q for a in operands if a.q is not None]
        has_q = len(seconds) == len(operands)
        arguments = [a.p.astype(np.uint64) for a in operands]
        if has_q:
            arguments = [p | (q.astype(np.uint64) << np.uint64(31)) for p, q in zip(arguments, seconds, strict=True)]
        p, q = self._oracle(fn if has_q else f"{fn} of p", joined(arguments, commutes))
        if fn in BY_SIGN:
            p, q = p * p % P, q * q % Q  # never negative
        # Absence goes on: a later exp of this value is a second one on the path.
        return FieldValue(p, q if has_q else None)

    def maximum(self, a: FieldValue, b: FieldValue) -> FieldValue:
        """The one that comes later in this seed's order; see order.py for what that shows."""
        return self.chosen(order.later(a.p, b.p, self._keys, self._by_sign), a, b)

    def places(self, a: FieldValue) -> NDArray[np.uint64]:
        """Where the elements come in this seed's order."""
        return order.places(a.p, self._keys, self._by_sign)

    def amax(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        found = order.last([a.p] if a.q is None else [a.p, a.q], self.places(a), over)
        return FieldValue(found[0], None if a.q is None else found[1])

    def sum(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        q = None if a.q is None else mod(a.q.sum(over, keepdims=True), Q)
        return FieldValue(mod(a.p.sum(over, keepdims=True), P), q)

    def dot(self, a: FieldValue, b: FieldValue, over: tuple[int, ...]) -> FieldValue:
        q = None if a.q is None or b.q is None else modular.dot(a.q, b.q, over, Q)
        return FieldValue(modular.dot(a.p, b.p, over, P), q)

    def running(self, a: FieldValue, over: tuple[int, ...], backwards: bool) -> FieldValue:
        q = None if a.q is None else mod(running_sums(a.q, over, backwards), Q)
        return FieldValue(mod(running_sums(a.p, over, backwards), P), q)

    def shape(self, a: FieldValue) -> tuple[int, ...]:
        return a.p.shape

    def rearrange(self, a: FieldValue, how: Rearrange) -> FieldValue:
        return FieldValue(how(a.p), None if a.q is None else how(a.q))

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, FieldValue]]) -> FieldValue:
        dtype: np.dtype[Any] = np.dtype(np.int64)
        p = assemble_arrays(shape, [(index, piece.p) for index, piece in pieces], dtype)
        parts = [(index, piece.q) for index, piece in pieces if piece.q is not None]
        return FieldValue(p, assemble_arrays(shape, parts, dtype) if len(parts) == len(pieces) else None)

    def differs(self, a: FieldValue, b: FieldValue) -> NDArray[np.bool_]:
        """[repetitions] whether any element differs, of tensors of equal shape. Z_q counts where both have it."""
        wrong = a.p != b.p
        if a.q is not None and b.q is not None:
            wrong = wrong | (a.q != b.q)
        return wrong.reshape(self.repetitions, -1).any(1)

    def chosen(self, where: NDArray[np.bool_], a: FieldValue, b: FieldValue) -> FieldValue:
        """`a` where it is true, else `b`: both components of one of them."""
        q = None if a.q is None or b.q is None else np.where(where, a.q, b.q)
        return FieldValue(np.where(where, a.p, b.p), q)

    def _negative(self, a: FieldValue) -> FieldValue:
        return FieldValue(mod(-a.p, P), None if a.q is None else mod(-a.q, Q))

    def _drawn(self, base: Base) -> tuple[list[int], list[int]]:
        """An element of each field, not 0, for each seed."""
        p, q = self._oracle(f"constant {base}", np.zeros(self.repetitions, np.uint64))
        return (p % (P - 1) + 1).tolist(), (q % (Q - 1) + 1).tolist()

    def _reject(self, zero: NDArray[np.bool_]) -> None:
        self.valid &= ~zero.reshape(zero.shape[0], -1).any(1)

    def _omega_to(self, exponent: Residues) -> Residues:
        """omega^exponent, each seed with its own omega, by windows of the exponent's bits."""
        if self._tables is None:
            self._tables = _power_tables(self._omega, self._window)
        seed = np.arange(self.repetitions).reshape((-1,) + (1,) * (exponent.ndim - 1))
        low = (1 << self._window) - 1
        result = self._tables[seed, 0, exponent & low]
        for window in range(1, self._tables.shape[1]):
            result = mod(result * self._tables[seed, window, (exponent >> (window * self._window)) & low], P)
        return result

    def _oracle(self, name: str, argument: NDArray[np.uint64]) -> tuple[Residues, Residues]:
        """Residues (mod P, mod Q) that look random and depend on the seed, the name and the argument's 64 bits."""
        tag = np.frombuffer(blake2b(name.encode(), digest_size=16).digest(), np.uint64)
        keys = self._keys.reshape((-1,) + (1,) * (argument.ndim - 1))
        mixed = mix(mix(argument ^ keys) ^ tag[0])
        p = (mix(mixed) % np.uint64(P)).astype(np.int64)
        return p, (mix(mixed ^ tag[1]) % np.uint64(Q)).astype(np.int64)


def _power_tables(omega: Residues, window: int) -> Residues:
    """[seeds, windows, 2^window]: omega^(digit * 2^(window * i)), filled by doubling."""
    count = ceil(_Q_BITS / window)
    tables = np.ones((omega.size, count, 1 << window), np.int64)
    base = omega
    for i in range(count):
        for bit in range(window):
            half = 1 << bit
            tables[:, i, half : 2 * half] = tables[:, i, :half] * base[:, None] % P
            base = base * base % P
    return tables

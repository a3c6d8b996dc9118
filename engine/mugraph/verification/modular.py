"""Arithmetic modulo a prime below 2^31, on int64 arrays of residues (0 <= x < prime).

Products of two residues fit in int64, so every function here is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Residues = NDArray[np.int64]

_HALF = 16
_TERMS = 1 << 7  # a residue (below 2^31) times a half (at most 2^15): so many add up exactly in float64 (2^53)
_TREE_LEAF = 32  # below this many elements, Fermat's power is cheaper than another level of the product tree
_THIN = 16  # columns: the other operand is read from memory for little arithmetic
_THIN_BITS = 11
_THIN_TERMS = 1 << 12  # a residue (below 2^31) times a part (at most 2^10): so many add up exactly in float64
_THIN_ROWS = 64  # at a time: they stay in a cache
_FEW = 2048  # elements: two more calls cost more than the divisions
_PIECE = 1 << 15  # elements that a power is computed of at a time
_DIRECT = 1 << 18  # dots of at most so many products are multiplied out, larger ones go to matmul


def mod(x: Residues, prime: int) -> Residues:
    """x % prime. NumPy divides by one number six times as fast as it takes remainders."""
    if x.size < _FEW:
        return x % prime
    found = x // prime
    found *= prime
    return np.subtract(x, found, out=found)


def power(x: Residues, exponent: int, prime: int) -> Residues:
    """x ** exponent for exponent >= 1, by squaring: about 60 passes over x, of a piece that stays in a cache."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = flat.copy()
    for at in range(0, flat.size, _PIECE):
        own, found = flat[at : at + _PIECE], result[at : at + _PIECE]
        rest = np.empty_like(found)
        for bit in bin(exponent)[3:]:
            _multiply(found, found, prime, rest)
            if bit == "1":
                _multiply(found, own, prime, rest)
    return result.reshape(x.shape)


def _multiply(x: Residues, y: Residues, prime: int, rest: Residues) -> None:
    """x becomes x y. rest: as large, for numbers on the way"""
    np.multiply(x, y, out=x)
    np.floor_divide(x, prime, out=rest)
    np.multiply(rest, prime, out=rest)
    np.subtract(x, rest, out=x)


def inverse(x: Residues, prime: int) -> Residues:
    """1 / x, and 0 where x is 0. A tree of products shares one power among all elements: 3 products an element."""
    flat = x.reshape(-1)
    safe = np.where(flat == 0, 1, flat)
    return np.where(flat == 0, 0, _invert(safe, prime)).reshape(x.shape)


def _invert(x: Residues, prime: int) -> Residues:
    if x.size <= _TREE_LEAF:
        return power(x, prime - 2, prime)
    if x.size % 2:
        return _invert(np.append(x, 1), prime)[:-1]
    low, high = np.split(x, 2)
    both = _invert(mod(low * high, prime), prime)
    return np.concatenate((mod(both * high, prime), mod(both * low, prime)))


def is_square(x: Residues, prime: int) -> NDArray[np.bool_]:
    """Whether x is a quadratic residue or 0 (Euler's criterion)."""
    return power(x, (prime - 1) // 2, prime) <= 1


def square_root(x: Residues, prime: int) -> Residues:
    """x^((prime+1)/4) for a prime that is 3 mod 4: multiplicative; a root of x where x is a square, else one of -x."""
    return power(x, (prime + 1) // 4, prime)


def matmul(a: Residues, b: Residues, prime: int) -> Residues:
    """[..., M, K] @ [..., K, N] modulo prime. Residues of the smaller operand are taken in halves of 16 bits, the lower
    one around zero: one float64 product each. A residue times a half is at most 2^46, so 2^7 of them add up exactly."""
    if a.size < b.size:
        return matmul(b.swapaxes(-1, -2), a.swapaxes(-1, -2), prime).swapaxes(-1, -2)
    if b.shape[-1] <= _THIN:
        total = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.int64)
        for start in range(0, a.shape[-1], _THIN_TERMS):
            _add_thin(total, a[..., start : start + _THIN_TERMS], b[..., start : start + _THIN_TERMS, :], prime)
        return total
    found: Residues | None = None
    for start in range(0, max(a.shape[-1], 1), _TERMS):
        left, right = a[..., start : start + _TERMS].astype(np.float64), b[..., start : start + _TERMS, :]
        high = (right + (1 << (_HALF - 1))) >> _HALF
        upper = mod(np.matmul(left, high.astype(np.float64)).astype(np.int64), prime)
        upper <<= _HALF
        upper += np.matmul(left, (right - (high << _HALF)).astype(np.float64)).astype(np.int64)
        if found is not None:
            upper += found
        found = mod(upper, prime)
    assert found is not None
    return found


def _add_thin(total: Residues, a: Residues, b: Residues, prime: int) -> None:
    """total += a @ b modulo prime, for few columns: a is read once. Residues of b are taken around zero, in three parts
    of 11 bits, whose products stand side by side."""
    low_bits, columns = 1 << (_THIN_BITS - 1), b.shape[-1]
    left = b - prime * (b > prime >> 1)
    parts: list[Residues] = []
    for _ in range(2):
        more = (left + low_bits) >> _THIN_BITS
        parts.append(left - (more << _THIN_BITS))
        left = more
    right = np.concatenate((*parts, left), -1).astype(np.float64)
    for start in range(0, a.shape[-2], _THIN_ROWS):
        found = np.matmul(a[..., start : start + _THIN_ROWS, :].astype(np.float64), right).astype(np.int64)
        low, middle, high = (found[..., i * columns : (i + 1) * columns] for i in range(3))
        upper = mod((mod(high, prime) << _THIN_BITS) + middle, prime)
        rows = total[..., start : start + _THIN_ROWS, :]
        rows[...] = mod(rows + (upper << _THIN_BITS) + low, prime)


def dot(a: Residues, b: Residues, over: tuple[int, ...], prime: int) -> Residues:
    """Sum over the positions `over` of a * b, kept as dimensions of size 1. a and b have equal rank and broadcast."""
    for position in over:
        if a.shape[position] == 1 and b.shape[position] > 1:
            b = mod(b.sum(position, keepdims=True), prime)
        elif b.shape[position] == 1 and a.shape[position] > 1:
            a = mod(a.sum(position, keepdims=True), prime)
    shape = np.broadcast_shapes(a.shape, b.shape)
    if np.prod(shape, dtype=np.float64) <= _DIRECT:
        return mod(mod(a * b, prime).sum(over, keepdims=True), prime)
    return _contract(a, b, over, shape, prime)


def _contract(a: Residues, b: Residues, over: tuple[int, ...], shape: tuple[int, ...], prime: int) -> Residues:
    """dot as a batched matmul: positions sorted into batch, rows (a only), columns (b only) and the reduced ones."""
    kept = [i for i in range(a.ndim) if i not in over]
    rows = [i for i in kept if a.shape[i] > 1 and b.shape[i] == 1]
    columns = [i for i in kept if b.shape[i] > 1 and a.shape[i] == 1]
    batch = [i for i in kept if i not in rows and i not in columns]

    def count(positions: list[int] | tuple[int, ...]) -> int:
        return int(np.prod([shape[i] for i in positions], dtype=np.int64))

    # Batch positions of size 1 in one operand only cannot occur: they would be rows or columns.
    left = a.transpose(*batch, *rows, *over, *columns).reshape(count(batch), count(rows), count(over))
    right = b.transpose(*batch, *over, *columns, *rows).reshape(count(batch), count(over), count(columns))
    product = matmul(left, right, prime)
    order = [*batch, *rows, *columns, *over]
    sizes = [1 if i in over else shape[i] for i in order]
    return product.reshape(sizes).transpose(*(order.index(i) for i in range(a.ndim)))

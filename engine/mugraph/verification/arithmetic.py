"""What an evaluator needs to know of numbers: one interface for finite fields, float64 and symbolic counting.

A value is held as an array (or several) of rank 1 + number of axes: position 0 runs over independent repetitions, the
others over the graph's axes in one fixed order, with size 1 for the axes a value has not. Broadcasting by name is then
numpy's broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.ops.functions.floats import float_unary

Index = tuple[slice, ...]
# A rearrangement of an array (slice, reshape, transpose, pad) that looks at no element: it must not care for the dtype.
Rearrange = Callable[[NDArray[Any]], NDArray[Any]]

V = TypeVar("V")


class Arithmetic(Protocol[V]):
    """Positions in `over` count from 0 = repetitions; reductions keep the position with size 1."""

    def constant(self, value: float, rank: int) -> V: ...

    def indicator(self, where: NDArray[np.bool_]) -> V:
        """1 where it is true, else 0."""
        ...

    def whole(self, numbers: NDArray[np.int64]) -> V:
        """These numbers."""
        ...

    def add(self, a: V, b: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def div(self, a: V, b: V) -> V: ...
    def sqrt(self, a: V) -> V: ...
    def exp(self, a: V) -> V: ...
    def unary(self, fn: str, a: V) -> V: ...
    def opaque(self, kind: Kind, *operands: V) -> V: ...
    def maximum(self, a: V, b: V) -> V: ...
    def amax(self, a: V, over: tuple[int, ...]) -> V: ...
    def sum(self, a: V, over: tuple[int, ...]) -> V: ...
    def dot(self, a: V, b: V, over: tuple[int, ...]) -> V: ...
    def running(self, a: V, over: tuple[int, ...], backwards: bool) -> V: ...
    def shape(self, a: V) -> tuple[int, ...]: ...
    def rearrange(self, a: V, how: Rearrange) -> V: ...

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, V]]) -> V:
        """An array of this shape made of the pieces; they cover it."""
        ...


class OfRank(Generic[V]):
    """An arithmetic as the meaning of a kind takes it: its constants have the rank of the values around them."""

    def __init__(self, arithmetic: Arithmetic[V], rank: int) -> None:
        self._arithmetic, self._rank = arithmetic, rank

    def constant(self, value: float) -> V:
        return self._arithmetic.constant(value, self._rank)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)


def assemble_arrays(
    shape: tuple[int, ...], pieces: Sequence[tuple[Index, NDArray[Any]]], dtype: np.dtype[Any]
) -> NDArray[Any]:
    whole = np.empty(shape, dtype)
    for index, piece in pieces:
        whole[index] = piece
    return whole


def running_sums(a: NDArray[Any], over: tuple[int, ...], backwards: bool) -> NDArray[Any]:
    """Of the numbers up to each place along the one position in `over`; backwards: from each place on."""
    (position,) = over
    turned = np.flip(a, position) if backwards else a
    sums = turned.cumsum(position)
    return np.flip(sums, position) if backwards else sums


def running_totals(
    a: NDArray[Any], over: tuple[int, ...], backwards: bool, add: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """As `running_sums`, of elements that are no numbers."""
    (position,) = over
    places = range(a.shape[position])
    total: NDArray[Any] | None = None
    found: list[NDArray[Any]] = []
    for place in reversed(places) if backwards else places:
        element = np.take(a, [place], position)
        total = element if total is None else add(total, element)
        found.append(total)
    return np.concatenate(found[::-1] if backwards else found, position)


class FloatArithmetic:
    """float64; one repetition is usual. The functions follow ops/functions/unary.py's definitions."""

    def constant(self, value: float, rank: int) -> NDArray[np.float64]:
        return np.full((1,) * (rank + 1), value, np.float64)

    def indicator(self, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        return where.astype(np.float64)

    def whole(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return numbers.astype(np.float64)

    def add(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return a + b

    def mul(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return a * b

    def div(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return a / b

    def sqrt(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(a)

    def exp(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(a)

    def unary(self, fn: str, a: NDArray[np.float64]) -> NDArray[np.float64]:
        return float_unary(fn)(a)

    def opaque(self, kind: Kind, *operands: NDArray[np.float64]) -> NDArray[np.float64]:
        assert kind.opaque is not None
        return kind.opaque.numbers(*operands)

    def maximum(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(a, b)

    def amax(self, a: NDArray[np.float64], over: tuple[int, ...]) -> NDArray[np.float64]:
        return a.max(over, keepdims=True)

    def sum(self, a: NDArray[np.float64], over: tuple[int, ...]) -> NDArray[np.float64]:
        return a.sum(over, keepdims=True)

    def dot(self, a: NDArray[np.float64], b: NDArray[np.float64], over: tuple[int, ...]) -> NDArray[np.float64]:
        letters = "abcdefghijklmnopqrstuvwxyz"[: a.ndim]
        # einsum wants equal sizes where a letter occurs twice; size-1 positions of one operand are left out of it.
        left = [i for i in range(a.ndim) if a.shape[i] > 1 or b.shape[i] == 1]
        right = [i for i in range(a.ndim) if b.shape[i] > 1]
        kept = [i for i in range(a.ndim) if i not in over]
        names = ["".join(letters[i] for i in positions) for positions in (left, right, kept)]
        flat = np.einsum(
            f"{names[0]},{names[1]}->{names[2]}",
            a.reshape([a.shape[i] for i in left]),
            b.reshape([b.shape[i] for i in right]),
            optimize=True,
        )
        return np.expand_dims(flat, over)

    def running(self, a: NDArray[np.float64], over: tuple[int, ...], backwards: bool) -> NDArray[np.float64]:
        return running_sums(a, over, backwards)

    def shape(self, a: NDArray[np.float64]) -> tuple[int, ...]:
        return a.shape

    def rearrange(self, a: NDArray[np.float64], how: Rearrange) -> NDArray[np.float64]:
        return how(a)

    def assemble(
        self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, NDArray[np.float64]]]
    ) -> NDArray[np.float64]:
        return assemble_arrays(shape, pieces, np.dtype(np.float64))

"""Parameters of a schedule, each with its topology: which of its values are one step apart (OpEvo §3).

A parameter is a finite graph. Its vertices are the values, and its moves lead from a value to an adjacent one. OpEvo
has three kinds: factorisations, of which a move takes a prime from one factor to another; numbers, to the next one up
or down; and categories, to any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2, prod
from typing import Literal

Value = int | str | tuple[int, ...]
Point = tuple[int, ...]
"""For every parameter of a space, the position of its value."""


@dataclass(frozen=True)
class Parameter:
    """values: each once. moves: for every move, where it leads from each position; -1 where it cannot be made."""

    name: str
    kind: Literal["factorisation", "discrete", "categorical"]
    values: tuple[Value, ...]
    moves: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def adjacent(self) -> tuple[tuple[int, ...], ...]:
        """Positions one step from each position."""
        return tuple(
            tuple(sorted({move[at] for move in self.moves if move[at] >= 0})) for at in range(len(self.values))
        )

    @cached_property
    def features(self) -> tuple[tuple[float, ...], ...]:
        """Each value as numbers between 0 and 1, for a model to learn from: the logarithms of factors, the place among
        numbers, one number for each category."""
        count = len(self.values)
        if self.kind == "categorical":
            return tuple(tuple(float(at == other) for other in range(count)) for at in range(count))
        if self.kind == "discrete":
            return tuple((at / max(1, count - 1),) for at in range(count))
        logarithms = [tuple(log2(factor) for factor in _factors(value)) for value in self.values]
        most = max((max(row) for row in logarithms), default=0.0) or 1.0
        return tuple(tuple(one / most for one in row) for row in logarithms)


def categorical(name: str, values: Sequence[Value]) -> Parameter:
    """All others are adjacent to each value."""
    count = len(values)
    moves = [tuple(to if at != to else -1 for at in range(count)) for to in range(count)] if count > 1 else []
    return Parameter(name, "categorical", tuple(values), tuple(moves))


def discrete(name: str, numbers: Sequence[int]) -> Parameter:
    """The next number up and the next one down are adjacent."""
    values = tuple(sorted(set(numbers)))
    count = len(values)
    up = tuple(at + 1 if at + 1 < count else -1 for at in range(count))
    down = tuple(at - 1 for at in range(count))
    return Parameter(name, "discrete", values, (up, down) if count > 1 else ())


def factorisation(
    name: str, product: int, factors: int, admits: Callable[[tuple[int, ...]], bool] = lambda _: True
) -> Parameter:
    """All ways to write `product` as so many ordered factors. Two are adjacent if one becomes the other when a prime
    moves from one factor to another.

    admits: which of them the space has. Where the next one is not among them, the move goes on with the same prime to
            the first that is, so that those left stay connected along each direction.

    Raises ValueError where none is admitted.
    """
    values = [value for value in _factorisations(product, factors) if admits(value)]
    if not values:
        raise ValueError(f"no factorisation of {product} is admitted for {name}")
    position = {value: at for at, value in enumerate(values)}
    moves: list[tuple[int, ...]] = []
    for source, sink in itertools.permutations(range(factors), 2):
        for prime in dict.fromkeys(_primes(product)):
            move = tuple(_moved(value, source, sink, prime, position) for value in values)
            if any(to >= 0 for to in move):
                moves.append(move)
    return Parameter(name, "factorisation", tuple(values), tuple(moves))


def _moved(value: tuple[int, ...], source: int, sink: int, prime: int, position: dict[tuple[int, ...], int]) -> int:
    """Where the move leads; -1 where it cannot be made."""
    made = list(value)
    while made[source] % prime == 0:
        made[source] //= prime
        made[sink] *= prime
        to = position.get(tuple(made))
        if to is not None:
            return to
    return -1


def _factorisations(product: int, factors: int) -> Iterator[tuple[int, ...]]:
    """In lexicographic order."""
    if factors == 1:
        yield (product,)
        return
    for first in (n for n in range(1, product + 1) if product % n == 0):
        yield from ((first, *rest) for rest in _factorisations(product // first, factors - 1))


def _primes(number: int) -> list[int]:
    """With repetition, the least first."""
    found: list[int] = []
    prime = 2
    while number > 1:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
        if prime * prime > number > 1:
            found.append(number)
            break
    return found


def _factors(value: Value) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else ()


def size(parameters: Sequence[Parameter]) -> int:
    """Points of the product of all parameters."""
    return prod(len(parameter.values) for parameter in parameters)

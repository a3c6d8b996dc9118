"""What is measured next: the interface of all tuners, and what those have in common that search a space."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space

T = TypeVar("T")
Told = tuple[T, float | None]
"""What was asked for, with its microseconds; None where it has no time, for it cannot be compiled or launched."""
Batch = list[tuple[Point, Hashable]]


class Tuner(Protocol[T]):
    """A strategy. It is asked for a batch, which is compiled in parallel, then told the times of it, and asked again.

    Whoever asks may measure fewer than he was given, the first ones, and tells of those; he does not ask again then.
    """

    def ask(self) -> Sequence[T]:
        """What to measure next, each at most once in the tuner's life; nothing where it has come to its end."""
        ...

    def tell(self, results: Sequence[Told[T]]) -> None:
        """Times of what was asked for last, in that order."""
        ...


@dataclass(frozen=True)
class Trial:
    """A point that was measured. fitness: its speed, which the paper's TFLOPS are a multiple of; 0 where it failed."""

    point: Point
    us: float | None

    @property
    def fitness(self) -> float:
        return 1.0 / self.us if self.us else 0.0


class SpaceTuner(ABC):
    """A tuner of a space. It proposes valid points only, and none twice; equal seeds make equal proposals.

    trials: all that were told of, in that order
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.random = random.Random(seed)
        self.trials: list[Trial] = []
        self._proposed: set[Hashable] = set()
        self._left: list[Point] | None = None

    def ask(self) -> Sequence[Point]:
        return self._next()

    def tell(self, results: Sequence[Told[Point]]) -> None:
        new = [Trial(point, us) for point, us in results]
        self.trials += new
        self._learn(new)

    @abstractmethod
    def _next(self) -> list[Point]:
        """The next batch, each point of it taken by `_take`."""

    def _learn(self, new: Sequence[Trial]) -> None:
        """From the batch that was measured. It is among the trials already."""
        return

    def _take(self, point: Point) -> bool:
        """Whether the point may be proposed: it is valid and was not proposed before. It counts as proposed now."""
        key = self.space.key(point)
        if key in self._proposed or not self.space.is_valid(point):
            return False
        self._proposed.add(key)
        return True

    def _is_new(self, point: Point) -> bool:
        return self.space.key(point) not in self._proposed and self.space.is_valid(point)

    def _drawn(self, tries: int = 64) -> Point | None:
        """Any point that was not proposed yet, taken; None where there is no other."""
        for _ in range(tries if self._left is None else 0):
            point = self.space.sample(self.random)
            if point is not None and self._take(point):
                return point
        if self._left is None:  # nearly all were proposed, or few are valid: then all of them can be listed
            self._left = [point for point in self.space.points() if self._is_new(point)]
            self.random.shuffle(self._left)
        while self._left:
            point = self._left.pop()
            if self._take(point):
                return point
        return None

    def _all_drawn(self, count: int) -> list[Point]:
        """So many, or as many as there are."""
        found: list[Point] = []
        while len(found) < count and (point := self._drawn()) is not None:
            found.append(point)
        return found

    def _origin(self) -> Point | None:
        """Where G-BFS and N-A2C begin: without tiling, as far as the space goes. Taken; None where the space is
        empty."""
        first = next(iter(self.space.points()), None)
        return first if first is not None and self._take(first) else None

    def _neighbours(self, point: Point) -> Iterator[Point]:
        """New ones, each one step away in one parameter."""
        for at, parameter in enumerate(self.space.parameters):
            for value in parameter.adjacent[point[at]]:
                near = (*point[:at], value, *point[at + 1 :])
                if self._is_new(near):
                    yield near

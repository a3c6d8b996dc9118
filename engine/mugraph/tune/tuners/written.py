"""A tuner of points as a tuner of what is written from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from mugraph.search.schedules.parameters import Point
from mugraph.tune.tuners.tuner import T, Told, Tuner


class Written(Generic[T]):
    """tuner: is told that a point has no time where `write` answers None, for no kernel can be written from it"""

    def __init__(self, tuner: Tuner[Point], write: Callable[[Point], T | None]) -> None:
        self._tuner, self._write = tuner, write
        self._asked: list[tuple[Point, T | None]] = []

    def ask(self) -> Sequence[T]:
        while points := self._tuner.ask():
            self._asked = [(point, self._write(point)) for point in points]
            made = [one for _, one in self._asked if one is not None]
            if made:
                return made
            self.tell([])
        return []

    def tell(self, results: Sequence[Told[T]]) -> None:
        """Results may be of the first ones alone: then the points after those are not told of."""
        left = iter(results)
        told: list[Told[Point]] = []
        for point, one in self._asked:
            if one is None:
                told.append((point, None))
                continue
            result = next(left, None)
            if result is None:
                break
            told.append((point, result[1]))
        self._tuner.tell(told)

"""Random search: what every other tuner has to beat."""

from __future__ import annotations

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.tuner import SpaceTuner

BATCH = 8


class RandomSearch(SpaceTuner):
    """A topology, tiles and the rest, each drawn evenly, until something fits that was not proposed yet."""

    def __init__(self, space: Space, seed: int = 0, batch: int = BATCH) -> None:
        super().__init__(space, seed)
        self._batch = batch

    def _next(self) -> list[Point]:
        return self._all_drawn(self._batch)

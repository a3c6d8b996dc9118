"""G-BFS (Zhang et al., "Compiler-Level Matrix Multiplication Optimization for Deep Learning", 2019): greedy best-first
search over the graph of neighbouring schedules."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import inf

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.tuner import SpaceTuner, Trial

NEIGHBOURS = 5
"""Drawn around each state: rho, as in the papers' experiments."""


class GreedyBestFirst(SpaceTuner):
    """From the state with the least time that was not expanded yet, `rho` neighbours drawn at random are measured and
    queued. It begins with the schedule without tiling.

    The papers' graph has moves of one factor; here it has those of every kind of parameter. They leave open what comes
    after the last state of the queue: here, states that still have new neighbours are expanded again, and then any
    point that was not proposed yet begins anew.
    """

    def __init__(self, space: Space, seed: int = 0, neighbours: int = NEIGHBOURS) -> None:
        super().__init__(space, seed)
        self._rho = neighbours
        self._queue: list[tuple[float, int, Point]] = []
        self._expanded: list[tuple[float, int, Point]] = []

    def _learn(self, new: Sequence[Trial]) -> None:
        for number, trial in enumerate(new, len(self.trials)):
            heapq.heappush(self._queue, (inf if trial.us is None else trial.us, number, trial.point))

    def _next(self) -> list[Point]:
        if not self.trials:
            origin = self._origin()
            return [origin] if origin is not None else []
        return self._around_queued() or self._around_expanded() or self._all_drawn(1)

    def _around_queued(self) -> list[Point]:
        while self._queue:
            state = heapq.heappop(self._queue)
            found = self._around(state)
            if found:
                return found
        return []

    def _around_expanded(self) -> list[Point]:
        """Once the queue is empty."""
        self._queue, self._expanded = self._expanded, []
        heapq.heapify(self._queue)
        return self._around_queued()

    def _around(self, state: tuple[float, int, Point]) -> list[Point]:
        near = list({self.space.key(point): point for point in self._neighbours(state[2])}.values())
        chosen = self.random.sample(near, min(self._rho, len(near)))
        if len(near) > len(chosen):
            self._expanded.append(state)
        return [point for point in chosen if self._take(point)]

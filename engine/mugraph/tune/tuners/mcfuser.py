"""MCFuser's heuristic search (Zhang et al., 2023, §IV-B): a population that an analytical model ranks."""

from __future__ import annotations

from collections.abc import Hashable

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.tuner import SpaceTuner

POPULATION = 128
"""N, which the paper leaves open."""
MEASURED = 8
"""n: the best by the model of each generation, which are measured."""
EPSILON = 0.01
"""Of the best time. The paper leaves it open as well."""
_GENERATIONS = 100
"""One after the other of whose best all were measured before."""
_TRIES = 20


class McFuser(SpaceTuner):
    """Algorithm 1. The best n of a population by MCFuser's model are measured; where the fastest of them is within
    epsilon of the best so far, the search is over. If not, N candidates are drawn from the population in proportion to
    1 / estimate, and one tile of each is changed.

    The published space has tiles alone. What else a schedule has is drawn with the first population, and inherited.
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        population: int = POPULATION,
        measured: int = MEASURED,
        epsilon: float = EPSILON,
    ) -> None:
        super().__init__(space, seed)
        self._size, self._most, self._epsilon = population, measured, epsilon
        self._tiles = [at for at, one in enumerate(space.parameters) if one.kind == "factorisation" and one.moves]
        self._population: list[tuple[float, Point]] = []
        self._top: list[Hashable] = []
        self._us: dict[Hashable, float | None] = {}
        self._best: float | None = None

    def _next(self) -> list[Point]:
        for _ in range(_GENERATIONS):
            if self._population:
                if self._converged():
                    return []
                self._population = self._mutated()
            else:
                self._population = self._estimated(self._first())
            self._population.sort(key=lambda one: one[0])
            top: dict[Hashable, Point] = {}
            for _, point in self._population:
                top.setdefault(self.space.key(point), point)
                if len(top) == self._most:
                    break
            self._top = list(top)
            new = [point for point in top.values() if self._take(point)]
            if new or not self._population:
                return new
        return []

    def _first(self) -> list[Point]:
        drawn = (self.space.sample(self.random) for _ in range(self._size))
        found = [point for point in drawn if point is not None]
        return found or [point for point, _ in zip(self.space.points(), range(self._size), strict=False)]

    def _estimated(self, points: list[Point]) -> list[tuple[float, Point]]:
        return [(self.space.mcfuser_us(point), point) for point in points]

    def _converged(self) -> bool:
        """Lines 11 to 19: of the generation that was measured last."""
        for trial in self.trials[len(self._us) :]:
            self._us[self.space.key(trial.point)] = trial.us
        times = [us for key in self._top if (us := self._us.get(key)) is not None]
        if not times:
            return False
        fastest = min(times)
        if self._best is not None and abs(fastest - self._best) < self._epsilon * self._best:
            return True
        self._best = min(fastest, self._best or fastest)
        return False

    def _mutated(self) -> list[tuple[float, Point]]:
        weights = [1.0 / max(us, 1e-9) for us, _ in self._population]
        drawn = self.random.choices([point for _, point in self._population], weights, k=self._size)
        return self._estimated([self._with_other_tile(point) for point in drawn])

    def _with_other_tile(self, point: Point) -> Point:
        """Another valid point; the same one where some draws found none."""
        key = self.space.key(point)
        for _ in range(_TRIES if self._tiles else 0):
            at = self.random.choice(self._tiles)
            value = self.random.randrange(len(self.space.parameters[at].values))
            made = (*point[:at], value, *point[at + 1 :])
            if self.space.is_valid(made) and self.space.key(made) != key:
                return made
        return point

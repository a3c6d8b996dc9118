"""A model-based tuner in the manner of AutoTVM (Chen et al., 2018): boosted trees learn from what was measured, and
simulated annealing looks for what they promise most of. The trees are scikit-learn's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mugraph.dependencies import installed
from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.tuner import SpaceTuner

PLAN = 64
"""Trials between one training and the next, as in AutoTVM."""
GREEDY = 0.95
"""Share of a plan that the model chooses; the rest is drawn."""
CHAINS, ITERATIONS, SETTLED = 64, 60, 20
"""Of the annealing: side by side, and at most; it ends after so many that do not better the plan. (AutoTVM's 128 and
500 are for spaces a thousand times as large.)"""
NEEDED = "the tuner boosted needs scikit-learn, which is not installed: pip install 'mugraph[tuners]'"


class Boosted(SpaceTuner):
    """Raises ModuleNotFoundError without scikit-learn.

    plan: trials between one training and the next
    """

    def __init__(self, space: Space, seed: int = 0, plan: int = PLAN) -> None:
        super().__init__(space, seed)
        if not installed("sklearn"):
            raise ModuleNotFoundError(NEEDED)
        self._seed, self._plan = seed, plan
        self._chains: list[Point] = []

    def _next(self) -> list[Point]:
        times = [trial.us for trial in self.trials if trial.us is not None]
        if len(set(times)) < 2 or len(self.trials) < self._plan:
            return self._all_drawn(self._plan)
        found: list[Point] = []
        for point in self._promising():
            if self.random.random() > GREEDY:
                found += self._all_drawn(1)
            elif self._take(point):
                found.append(point)
        return [*found[: self._plan], *self._all_drawn(self._plan - len(found))]

    def _promising(self) -> list[Point]:
        """New ones, the best by the model first, as many as a plan has at most."""
        model = self._trained()
        while len(self._chains) < CHAINS and (point := self.space.sample(self.random)) is not None:
            self._chains.append(point)
        if not self._chains:
            return []
        scores = self._scores(model, self._chains)
        best: dict[Hashable, tuple[float, Point]] = {}
        self._keep(best, self._chains, scores)
        settled = 0
        for iteration in range(ITERATIONS):
            moved = [self._moved(point) for point in self._chains]
            new = self._scores(model, moved)
            warmth = 1.0 - iteration / ITERATIONS
            for at, (was, now) in enumerate(zip(scores, new, strict=True)):
                if now >= was or self.random.random() < exp((now - was) / max(warmth, 1e-3)):
                    self._chains[at], scores[at] = moved[at], now
            settled = 0 if self._keep(best, moved, new) else settled + 1
            if settled == SETTLED:
                break
        return [point for _, point in sorted(best.values(), key=lambda one: -one[0])]

    def _keep(self, best: dict[Hashable, tuple[float, Point]], points: Sequence[Point], scores: list[float]) -> bool:
        """Whether any of them is one of the best."""
        before = set(best)
        for point, score in zip(points, scores, strict=True):
            if self._is_new(point):
                best[self.space.key(point)] = score, point
        for key, _ in sorted(best.items(), key=lambda one: -one[1][0])[self._plan :]:
            del best[key]
        return set(best) != before

    def _moved(self, point: Point) -> Point:
        """With another value of one parameter; the same where that is not valid."""
        free = [at for at, one in enumerate(self.space.parameters) if len(one.values) > 1]
        if not free:
            return point
        at = self.random.choice(free)
        values = [value for value in range(len(self.space.parameters[at].values)) if value != point[at]]
        made = (*point[:at], self.random.choice(values), *point[at + 1 :])
        return made if self.space.is_valid(made) else point

    def _trained(self) -> Any:
        """On the speed relative to the best; what failed has none."""
        from sklearn.ensemble import GradientBoostingRegressor  # pyright: ignore

        most = max(trial.fitness for trial in self.trials)
        model = cast("Any", GradientBoostingRegressor)(n_estimators=100, max_depth=4, random_state=self._seed)
        points = [trial.point for trial in self.trials]
        model.fit(self._features(points), [trial.fitness / most for trial in self.trials])
        return model

    def _scores(self, model: Any, points: Sequence[Point]) -> list[float]:
        return [float(score) for score in model.predict(self._features(points))]

    def _features(self, points: Sequence[Point]) -> NDArray[np.float64]:
        parameters = self.space.parameters
        rows = [[one for p, at in zip(parameters, point, strict=True) for one in p.features[at]] for point in points]
        return np.array(rows, dtype=np.float64)

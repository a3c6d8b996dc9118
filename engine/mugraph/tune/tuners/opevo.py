"""OpEvo (Gao et al., 2020): evolution whose mutation knows the topologies of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.random_walk import Q, q_random_walk
from mugraph.tune.tuners.tuner import SpaceTuner, Trial

PARENTS = 8
OFFSPRING = 8
"""Both as in the paper's experiments (appendix B)."""
_MUTATED = 500
"""Times a child is mutated until it is new and valid, before any other point takes its place."""


class OpEvo(SpaceTuner):
    """Algorithm 1. The parents are the best of all trials, not of the last generation. Each parameter of a child comes
    from a parent drawn in proportion to fitness (eq. 2), then each takes a q-random walk. A child that was proposed
    before is mutated again (§4.4), and so is one that is not valid; the paper measures those, as failures.

    seeds: of the first generation, by a cost model; the paper draws it at random, as is done with what they lack
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        seeds: Sequence[Point] = (),
        parents: int = PARENTS,
        offspring: int = OFFSPRING,
        q: float = Q,
    ) -> None:
        super().__init__(space, seed)
        self._seeds = list(seeds)
        self._parents, self._offspring, self._q = parents, offspring, q
        self._ranked: list[Trial] = []

    def _learn(self, new: Sequence[Trial]) -> None:
        self._ranked = sorted([*self._ranked, *new], key=lambda trial: -trial.fitness)

    def _next(self) -> list[Point]:
        parents = self._ranked[: self._parents]
        if len(parents) < self._parents or not parents[0].fitness:  # nothing to inherit yet
            seeds = self._seeds if not self._ranked else []
            seeded = list(islice((seed for seed in seeds if self._take(seed)), self._offspring))
            return [*seeded, *self._all_drawn(self._offspring - len(seeded))]
        children: list[Point] = []
        weights = [parent.fitness for parent in parents]
        while len(children) < self._offspring:
            child = self._born(parents, weights)
            if child is None:
                break
            children.append(child)
        return children

    def _born(self, parents: Sequence[Trial], weights: Sequence[float]) -> Point | None:
        """None where there is no other point."""
        count = len(self.space.parameters)
        givers = self.random.choices(parents, weights, k=count)
        child = tuple(giver.point[at] for at, giver in enumerate(givers))
        for _ in range(_MUTATED if self._left is None else 0):
            child = self._mutated(child)
            if self._take(child):
                return child
        return self._drawn()

    def _mutated(self, point: Point) -> Point:
        parameters = self.space.parameters
        return tuple(q_random_walk(p, at, self._q, self.random) for p, at in zip(parameters, point, strict=True))

"""N-A2C (Zhang et al., "Compiler-Level Matrix Multiplication Optimization for Deep Learning", 2019): an actor and a
critic learn which step leads to a faster schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import Space
from mugraph.tune.tuners.actor_critic_net import ActorCriticNet, Array
from mugraph.tune.tuners.tuner import SpaceTuner, Trial

STEPS = 3
"""Of a walk at most: tau, as in the papers' experiments."""
COLLECTED = 6
"""New states before they are measured and learnt from."""
RANDOM = 0.1
"""Share of steps that do not ask the actor."""
HIDDEN, RATE = 128, 1e-3
_WALKS = 64
"""Walks for one batch, at most: there may be nothing new left around the best."""


class ActorCritic(SpaceTuner):
    """Walks of `steps` steps begin at the best state so far. New states on the way are measured; their speed, relative
    to the first that had one, is the reward of the steps that led to them. It begins with the schedule without tiling.

    The papers' steps move one factor; here the steps of every kind of parameter are actions. A step that cannot be
    made, or leads to a state that is not valid, leaves the walk where it is. Where walks find too little that is new,
    points drawn at random fill the batch.
    """

    def __init__(self, space: Space, seed: int = 0, steps: int = STEPS, collected: int = COLLECTED) -> None:
        super().__init__(space, seed)
        self._steps, self._most = steps, collected
        self._actions = [(at, move) for at, one in enumerate(space.parameters) for move in one.moves]
        features = len(self._features(tuple(0 for _ in space.parameters)))
        generator = np.random.default_rng(seed)
        self._net = ActorCriticNet(features, max(1, len(self._actions)), HIDDEN, RATE, generator)
        self._led: dict[Point, tuple[Array, int]] = {}
        self._best: Trial | None = None
        self._first_us: float | None = None

    def _next(self) -> list[Point]:
        if not self.trials:
            origin = self._origin()
            return [origin] if origin is not None else []
        start = (self._best or self.trials[0]).point
        found: list[Point] = []
        for _ in range(_WALKS if self._actions and self._left is None else 0):
            self._walk(start, found)
            if len(found) >= self._most:
                break
        return [*found, *self._all_drawn(self._most - len(found))]

    def _walk(self, point: Point, found: list[Point]) -> None:
        for _ in range(self._steps):
            state = np.array(self._features(point))
            action = self._chosen(state)
            at, move = self._actions[action]
            if move[point[at]] < 0:
                continue
            near = (*point[:at], move[point[at]], *point[at + 1 :])
            if not self.space.is_valid(near):
                continue
            if len(found) < self._most and self._take(near):
                found.append(near)
                self._led[near] = state, action
            point = near

    def _chosen(self, state: Array) -> int:
        if self.random.random() < RANDOM:
            return self.random.randrange(len(self._actions))
        _, policy = self._net(state)
        return self.random.choices(range(len(policy)), policy.tolist())[0]

    def _learn(self, new: Sequence[Trial]) -> None:
        for trial in new:
            if trial.us is not None:
                self._first_us = self._first_us or trial.us
                if self._best is None or trial.fitness > self._best.fitness:
                    self._best = trial
        known = [(trial, *self._led.pop(trial.point)) for trial in new if trial.point in self._led]
        if known:
            scale = self._first_us or 0.0
            rewards = [trial.fitness * scale for trial, _, _ in known]
            self._net.train([state for _, state, _ in known], [action for _, _, action in known], rewards)

    def _features(self, point: Point) -> list[float]:
        parameters = self.space.parameters
        return [one - 0.5 for p, at in zip(parameters, point, strict=True) for one in p.features[at]]

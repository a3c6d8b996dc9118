"""A tuner by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mugraph.dependencies import installed
from mugraph.protocol.settings import TunerName
from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import TOPOLOGY, Space
from mugraph.tune.tuners.actor_critic import ActorCritic
from mugraph.tune.tuners.boosted import NEEDED, PLAN, Boosted
from mugraph.tune.tuners.greedy import GreedyBestFirst
from mugraph.tune.tuners.mcfuser import McFuser
from mugraph.tune.tuners.model_then_walk import ModelThenWalk
from mugraph.tune.tuners.opevo import OpEvo
from mugraph.tune.tuners.random_search import RandomSearch
from mugraph.tune.tuners.tuner import Tuner

_LEAST_PLAN, _PLANS = 8, 8


def tuner_of(name: TunerName, space: Space, ranked: Sequence[Point], trials: int, seed: int = 0) -> Tuner[Point]:
    """Raises ModuleNotFoundError where a package is missing that it needs.

    ranked: the best by a cost model, first; only those that use a model look at them
    trials: that there will be at most
    """
    match name:
        case "walk":
            return _walk(space, ranked, trials)
        case "mcfuser":
            return McFuser(space, seed)
        case "opevo":
            return OpEvo(space, seed, ranked)
        case "random":
            return RandomSearch(space, seed)
        case "g-bfs":
            return GreedyBestFirst(space, seed)
        case "n-a2c":
            return ActorCritic(space, seed)
        case "boosted":
            # Of few trials no model would learn anything, were 64 drawn before the first training.
            return Boosted(space, seed, min(PLAN, max(_LEAST_PLAN, trials // _PLANS)))


def cannot(name: TunerName) -> str | None:
    """Why there is no such tuner here, in one sentence; None if there is."""
    return NEEDED if name == "boosted" and not installed("sklearn") else None


def _walk(space: Space, ranked: Sequence[Point], trials: int) -> Tuner[Point]:
    return ModelThenWalk(ranked, around_in(space), space.key, space.estimate_us, trials)


def around_in(space: Space) -> Callable[[Point], Sequence[Point]]:
    """Valid points of the same topology one step from a given one, the fastest by estimate first."""
    stays = {at for at, parameter in enumerate(space.parameters) if parameter.name == TOPOLOGY}

    def around(point: Point) -> Sequence[Point]:
        found = (
            (*point[:at], value, *point[at + 1 :])
            for at, parameter in enumerate(space.parameters)
            if at not in stays
            for value in parameter.adjacent[point[at]]
        )
        return sorted((near for near in found if space.is_valid(near)), key=space.estimate_us)

    return around

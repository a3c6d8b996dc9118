"""q-random walks over a parameter's values (OpEvo §4.3): near values are likely, none is impossible."""

from __future__ import annotations

import random

from mugraph.search.schedules.parameters import Parameter

Q = 0.5
"""The mutation rate of the paper's experiments."""


def q_random_walk(parameter: Parameter, start: int, q: float, random: random.Random) -> int:
    """Where a walk ends that goes on with probability `q` before each step, each time to any of the adjacent values
    alike (eq. 3: a step from u to v has probability q / |S(u)|).

    start: a position among the values. The larger `q`, the wider it spreads.
    """
    at = start
    while random.random() < q:
        near = parameter.adjacent[at]
        if not near:
            break
        at = random.choice(near)
    return at

"""Where q-random walks end agrees with the paper's closed form (OpEvo, appendix A)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from mugraph.search.schedules.parameters import Parameter, categorical, discrete, factorisation
from mugraph.tune.tuners.random_walk import q_random_walk
from numpy.typing import NDArray

DRAWN = 40_000
PARAMETERS = [factorisation("m", 8, 3), factorisation("n", 12, 2), discrete("stages", range(1, 7)),
              categorical("precision", ("a", "b", "c", "d"))]  # fmt: skip


def distribution(parameter: Parameter, start: int, q: float) -> NDArray[np.float64]:
    """(1 - q) (I - Q)^-1 c, where Q has q / |S(u)| from u to each adjacent v (eq. 3), and c is the start."""
    count = len(parameter.values)
    steps = np.zeros((count, count))
    for at, near in enumerate(parameter.adjacent):
        for to in near:
            steps[to, at] = q / len(near)
    return (1 - q) * np.linalg.solve(np.eye(count) - steps, np.eye(count)[start])


def excess(parameter: Parameter, start: int, drawn_q: float, q: float) -> float:
    """Of walks that are drawn with one rate, against the distribution of another, over what is not too rare: by how
    many standard deviations chi-square is above its mean where they agree."""
    drawn = random.Random(20)
    ends = np.bincount(
        [q_random_walk(parameter, start, drawn_q, drawn) for _ in range(DRAWN)], minlength=len(parameter.values)
    )
    expected = DRAWN * distribution(parameter, start, q)
    common = expected > 10
    freedom = max(1, int(common.sum()) - 1)
    return float((((ends - expected) ** 2 / expected)[common].sum() - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda one: one.name)
@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("start", [0, 2])
def test_ends_where_the_paper_says(parameter: Parameter, start: int, q: float) -> None:
    assert distribution(parameter, start, q).sum() == pytest.approx(1)
    assert excess(parameter, start, q, q) < 5


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda one: one.name)
def test_the_test_tells_rates_apart(parameter: Parameter) -> None:
    assert excess(parameter, 0, 0.5, 0.45) > 50


def test_more_complex_neighbourhoods_are_likelier() -> None:
    """§4.3: of vertices at the same distance, those with more neighbours."""
    parameter = factorisation("m", 8, 3)
    ends = distribution(parameter, parameter.values.index((8, 1, 1)), 0.5)
    at = parameter.values.index
    assert ends[at((2, 2, 2))] > ends[at((2, 4, 1))]


def test_limits() -> None:
    drawn = random.Random(1)
    parameter = discrete("stages", range(5))
    assert {q_random_walk(parameter, 2, 0.0, drawn) for _ in range(100)} == {2}
    assert q_random_walk(discrete("one", (3,)), 0, 0.99, drawn) == 0

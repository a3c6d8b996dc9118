"""Spaces whose every point and best point are known."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from mugraph.search.schedules.parameters import Parameter, Point, categorical, discrete, factorisation
from mugraph.tune.tuners.tuner import Tuner


def anywhere(_: Point) -> bool:
    return True


@dataclass
class Product:
    """All points of some parameters that `admits` admits; `us` is the time of each, and `model` what a model says.
    means: equal for points that mean the same"""

    parameters: Sequence[Parameter]
    us: Callable[[Point], float]
    admits: Callable[[Point], bool] = anywhere
    model: Callable[[Point], float] | None = None
    means: Callable[[Point], Hashable] = lambda point: point
    asked: int = field(default=0)

    def key(self, point: Point) -> Hashable:
        return self.means(point)

    def is_valid(self, point: Point) -> bool:
        self.asked += 1
        return self.admits(point)

    def sample(self, random: random.Random) -> Point | None:
        for _ in range(20):
            point = tuple(random.randrange(len(one.values)) for one in self.parameters)
            if self.admits(point):
                return point
        return None

    def points(self) -> Iterator[Point]:
        seen: set[Hashable] = set()
        for point in itertools.product(*(range(len(one.values)) for one in self.parameters)):
            if self.admits(point) and self.means(point) not in seen:
                seen.add(self.means(point))
                yield point

    def estimate_us(self, point: Point) -> float:
        return (self.model or self.us)(point)

    def mcfuser_us(self, point: Point) -> float:
        return (self.model or self.us)(point)

    @property
    def best_us(self) -> float:
        return min(map(self.us, self.points()))


def tiles(best: Point, valid: Callable[[Point], bool] = anywhere, rough: float = 0.0) -> Product:
    """Of a product of matrices, 3,000 points: the time grows with the steps from the best, in each parameter, and by a
    share that is drawn for each point."""
    parameters = [
        factorisation("m", 64, 2),
        factorisation("n", 128, 2),
        factorisation("k", 16, 2),
        discrete("warps", (1, 2, 4, 8, 16)),
        categorical("swap", (0, 1)),
    ]

    def us(point: Point) -> float:
        steps = sum(abs(a - b) for a, b in zip(point, best, strict=True))
        return (10.0 + 4.0 * steps) * (1.0 + rough * random.Random(repr(point)).random())

    return Product(parameters, us, valid)


@st.composite
def parameters(draw: st.DrawFn, number: int) -> Parameter:
    kind = draw(st.sampled_from(("factorisation", "discrete", "categorical")))
    if kind == "factorisation":
        product, factors = draw(st.sampled_from((1, 2, 6, 8, 12))), draw(st.integers(1, 3))
        return factorisation(str(number), product, factors)
    values = draw(st.lists(st.integers(0, 20), min_size=1, max_size=5, unique=True))
    return discrete(str(number), values) if kind == "discrete" else categorical(str(number), values)


@st.composite
def products(draw: st.DrawFn) -> Product:
    """Small ones, some of whose points are not valid, mean the same as others, or have no time."""
    found = [draw(parameters(number)) for number in range(draw(st.integers(1, 3)))]
    seed, share = draw(st.integers(0, 1000)), draw(st.sampled_from((0.0, 0.3, 0.9)))
    last_counts = draw(st.booleans())

    def admits(point: Point) -> bool:
        return random.Random(f"{seed} {meaning(point)}").random() >= share

    def us(point: Point) -> float:
        return 1.0 + random.Random(f"{seed} {meaning(point)} time").random()

    def meaning(point: Point) -> Point:
        return point if last_counts or point[0] % 2 else point[:-1]

    return Product(found, us, admits, means=meaning)


def run(
    tuner: Tuner[Point], us: Callable[[Point], float | None], trials: int | None = None
) -> list[tuple[Point, float | None]]:
    """What it asked for, with the times it was told, until it has come to its end or to so many trials."""
    told: list[tuple[Point, float | None]] = []
    while trials is None or len(told) < trials:
        asked = list(tuner.ask())[: None if trials is None else trials - len(told)]
        if not asked:
            break
        results = [(point, us(point)) for point in asked]
        tuner.tell(results)
        told += results
    return told

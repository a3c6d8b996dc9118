"""Single steps of the published methods."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from mugraph.search.schedules.parameters import Parameter, Point, categorical, discrete, factorisation
from mugraph.tune.tuners.actor_critic import COLLECTED, ActorCritic
from mugraph.tune.tuners.actor_critic_net import ActorCriticNet
from mugraph.tune.tuners.boosted import Boosted
from mugraph.tune.tuners.greedy import NEIGHBOURS, GreedyBestFirst
from mugraph.tune.tuners.mcfuser import MEASURED, McFuser
from mugraph.tune.tuners.opevo import OFFSPRING, OpEvo
from mugraph.tune.tuners.written import Written

from .spaces import Product, run, tiles

BEST = (2, 4, 1, 2, 1)


def wide(count: int = 3) -> list[Parameter]:
    return [discrete(f"p{number}", range(1000)) for number in range(count)]


def test_opevo_inherits_each_parameter_in_proportion_to_fitness() -> None:
    """Without mutation, and with parents of 1, 2 and 4 microseconds: 4/7, 2/7 and 1/7 of all parameters."""
    times = {(0, 0, 0): 1.0, (1, 1, 1): 2.0, (2, 2, 2): 4.0}
    space = Product(wide(), lambda point: times.get(point, 100.0))
    givers: Counter[int] = Counter()
    for seed in range(400):
        tuner = OpEvo(space, seed, list(times), parents=3, offspring=3, q=0.0)
        tuner.tell([(point, times[point]) for point in tuner.ask()])
        child = tuner._born(tuner._ranked[:3], [one.fitness for one in tuner._ranked[:3]])  # pyright: ignore[reportPrivateUsage]
        if child is not None and max(child) < 3:  # one that was proposed before cannot be mutated into another
            givers.update(child)
    total = sum(givers.values())
    shares = [givers[at] / total for at in range(3)]
    # Three equal parameters are no new child, so the shares are those among the others.
    chances = np.array([4, 2, 1]) / 7
    kept = 1 - (chances**3).sum()
    expected = [(chance - chance**3) / kept for chance in chances]
    assert shares == pytest.approx(expected, abs=0.05)


def test_opevo_keeps_the_best_of_all_generations() -> None:
    space = tiles(BEST)
    tuner = OpEvo(space, 3)
    run(tuner, space.us, 80)
    ranked = [trial.us for trial in tuner._ranked]  # pyright: ignore[reportPrivateUsage]
    assert len(ranked) == 80
    assert ranked == sorted(ranked, key=lambda us: us or 0.0)


def test_opevo_begins_with_the_models_best_or_at_random() -> None:
    space = tiles(BEST)
    ranked = sorted(space.points(), key=space.us)
    assert OpEvo(space, 0, ranked).ask() == ranked[:OFFSPRING]
    assert OpEvo(space, 0, ranked[:2]).ask()[:2] == ranked[:2]
    assert OpEvo(space, 0).ask() != OpEvo(space, 1).ask()


def test_opevo_draws_again_while_all_fail() -> None:
    space = tiles(BEST)
    told = run(OpEvo(space, 0), lambda point: None, 64)
    spread = [len({point[at] for point, _ in told}) for at in range(5)]
    assert spread == [7, 8, 5, 5, 2]


def test_gbfs_expands_the_fastest_that_was_not() -> None:
    space = tiles(BEST)
    tuner = GreedyBestFirst(space, 0)
    origin = list(tuner.ask())
    assert origin == [(0, 0, 0, 0, 0)]
    tuner.tell([(point, space.us(point)) for point in origin])
    known = {point: space.us(point) for point in origin}
    expanded: list[Point] = []
    for _ in range(10):
        asked = list(tuner.ask())
        assert 0 < len(asked) <= NEIGHBOURS
        fastest = min((point for point in known if point not in expanded), key=known.__getitem__)
        expanded.append(fastest)
        assert all(sum(a != b for a, b in zip(point, fastest, strict=True)) == 1 for point in asked)
        known |= {point: space.us(point) for point in asked}
        tuner.tell([(point, space.us(point)) for point in asked])


def test_mcfuser_measures_the_models_best_eight_and_ends_where_the_best_does_not_change() -> None:
    space = tiles(BEST)
    constant = Product(space.parameters, lambda point: 5.0, model=space.us)
    tuner = McFuser(constant, 0)
    first = list(tuner.ask())
    assert len(first) == MEASURED
    assert [space.us(point) for point in first] == sorted(space.us(point) for point in first)
    tuner.tell([(point, 5.0) for point in first])
    second = list(tuner.ask())
    assert second
    tuner.tell([(point, 5.04) for point in second])
    assert list(tuner.ask()) == [], "the second generation's best is within 1 % of the first's"


def test_mcfuser_goes_on_while_it_gets_faster_and_mutates_one_tile() -> None:
    space = tiles(BEST)
    tuner = McFuser(space, 0, population=16)
    before = list(tuner.ask())
    tuner.tell([(point, 100.0) for point in before])
    parents = [point for _, point in tuner._population]  # pyright: ignore[reportPrivateUsage]
    after = list(tuner.ask())
    assert after
    for point in after:
        steps = [[at for at in range(5) if point[at] != parent[at]] for parent in parents]
        assert any(len(one) == 1 and one[0] < 3 for one in steps)


def test_mcfuser_draws_parents_in_proportion_to_one_over_the_estimate() -> None:
    space = Product([discrete("w", (1, 2, 3))], lambda point: 1.0, model=lambda point: (1.0, 2.0, 4.0)[point[0]])
    tuner = McFuser(space, 0, population=7000)  # of one without tiles, a child is its parent
    tuner._population = [(space.mcfuser_us((at,)), (at,)) for at in range(3)]  # pyright: ignore[reportPrivateUsage]
    drawn = Counter(point[0] for _, point in tuner._mutated())  # pyright: ignore[reportPrivateUsage]
    assert [drawn[at] for at in range(3)] == pytest.approx([4000, 2000, 1000], rel=0.1)


def test_the_actor_is_rewarded_with_speed_relative_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    space = tiles(BEST)
    tuner = ActorCritic(space, 0)
    rewarded: list[float] = []
    monkeypatch.setattr(ActorCriticNet, "train", lambda self, states, actions, rewards: rewarded.extend(rewards))
    (origin,) = tuner.ask()
    tuner.tell([(origin, 8.0)])
    asked = list(tuner.ask())
    assert len(asked) == COLLECTED
    tuner.tell([(point, None if at == 1 else 2.0 + at) for at, point in enumerate(asked)])
    assert rewarded == pytest.approx([4.0, 0.0, *(8.0 / (2.0 + at) for at in range(2, COLLECTED))])
    assert tuner._best is not None  # pyright: ignore[reportPrivateUsage]
    assert tuner._best.point == asked[0]  # pyright: ignore[reportPrivateUsage]


def test_a_plan_of_the_trees_is_of_what_they_promise() -> None:
    space = tiles(BEST)
    tuner = Boosted(space, 0, plan=64)
    drawn = [us for _, us in run(tuner, space.us, 64) if us is not None]
    planned = [space.us(point) for point in tuner.ask()]
    assert len(planned) == 64
    assert sorted(planned)[48] < sorted(drawn)[16], "three quarters are faster than three quarters of those before"
    settled = sorted(space.us(point) for point in tuner._chains)  # pyright: ignore[reportPrivateUsage]
    assert settled[len(settled) // 2] < sorted(drawn)[16], "once it is cold, annealing only takes what is better"


def test_gradients_of_the_actor_critic() -> None:
    """Against finite differences of -log(policy) * advantage + advantage², the advantage of the first term fixed."""
    random = np.random.default_rng(0)
    net = ActorCriticNet(4, 3, 5, 1e-3, random)
    state, action, reward = random.normal(size=4), 2, 0.7
    fixed = reward - net(state)[0]

    def loss() -> float:
        value, policy = net(state)
        return float(-np.log(policy[action]) * fixed + (reward - value) ** 2)

    found = net.gradients(state, action, reward)
    for weight, gradient in zip(net._weights, found, strict=True):  # pyright: ignore[reportPrivateUsage]
        for at in np.ndindex(*weight.shape):
            kept = weight[at]
            weight[at] = kept + 1e-6
            above = loss()
            weight[at] = kept - 1e-6
            below = loss()
            weight[at] = kept
            assert gradient[at] == pytest.approx((above - below) / 2e-6, abs=1e-5)


def test_the_actor_learns_what_is_rewarded() -> None:
    net = ActorCriticNet(2, 2, 16, 1e-2, np.random.default_rng(0))
    state = np.array([0.5, -0.5])
    for _ in range(300):
        net.train([state, state], [0, 1], [1.0, 0.0])
    value, policy = net(state)
    assert policy[0] > 0.9
    assert 0 < value < 1


def test_what_cannot_be_written_has_no_time() -> None:
    told: list[tuple[Point, float | None]] = []

    class Asked:
        def __init__(self) -> None:
            self._batches = [[(0,)], [(1,), (2,), (3,)], [(4,), (5,), (6,)]]

        def ask(self) -> list[Point]:
            return self._batches.pop(0) if self._batches else []

        def tell(self, results: object) -> None:
            told.extend(results)  # pyright: ignore[reportArgumentType]

    tuner = Written[str](Asked(), lambda point: None if point[0] in (0, 2, 5) else f"kernel {point[0]}")
    assert tuner.ask() == ["kernel 1", "kernel 3"]
    assert told == [((0,), None)]
    tuner.tell([("kernel 1", 1.0), ("kernel 3", None)])
    assert told[1:] == [((1,), 1.0), ((2,), None), ((3,), None)]
    assert tuner.ask() == ["kernel 4", "kernel 6"]
    tuner.tell([("kernel 4", 4.0)])
    assert told[4:] == [((4,), 4.0), ((5,), None)], "what was not measured is not told of"
    assert tuner.ask() == []


def test_a_space_of_one_kind_of_everything() -> None:
    space = Product([factorisation("m", 1, 2), discrete("w", (4,)), categorical("p", ("a",))], lambda point: 1.0)
    for tuner in (OpEvo(space), GreedyBestFirst(space), McFuser(space)):
        assert run(tuner, space.us) == [((0, 0, 0), 1.0)]

"""The best by the cost model's rank, then what lies around the fastest of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Generic

from mugraph.tune.tuners.tuner import T, Told

MEASURED = 24
"""How many candidates are measured to begin with: MCFuser's eight are few where the model is wrong, hundreds take
minutes."""
WALKS = (10, 6)
"""How many more, the best by estimate of those one step from the fastest few, in each round of a walk from there."""
WALKERS = 3
TRIALS = MEASURED + sum(WALKS)
"""How many that are in all."""


class ModelThenWalk(Generic[T]):
    """ranked:   the best first
    around:   what is one step from one of them
    key:      equal for what need not be measured twice
    estimate: of what is around, least first
    trials:   with more than TRIALS, the walk goes on with rounds as the last one, and where nothing new lies around the
              fastest, with those that come next in rank
    """

    def __init__(
        self,
        ranked: Sequence[T],
        around: Callable[[T], Sequence[T]],
        key: Callable[[T], Hashable],
        estimate: Callable[[T], float],
        trials: int = TRIALS,
    ) -> None:
        self._around, self._key, self._estimate = around, key, estimate
        self._ranked = iter(ranked[:MEASURED] if trials <= TRIALS else ranked)
        self._goes_on = trials > TRIALS
        self._rounds = self._sizes(trials)
        self._seen: set[Hashable] = set()
        self._times: list[tuple[T, float]] = []

    def ask(self) -> Sequence[T]:
        most = next(self._rounds, 0)
        if not self._seen:
            return self._new(list(islice(self._ranked, most)), most)
        near = sorted((one for start in self._fastest() for one in self._around(start)), key=self._estimate)
        found = self._new(near, most)
        if self._goes_on:
            while len(found) < most and (one := next(self._ranked, None)) is not None:
                found += self._new([one], 1)
        return found

    def tell(self, results: Sequence[Told[T]]) -> None:
        self._times += [(one, us) for one, us in results if us is not None]

    @staticmethod
    def _sizes(trials: int) -> Iterator[int]:
        yield MEASURED
        yield from WALKS
        for begun in range(TRIALS, trials, WALKS[-1]):
            yield min(WALKS[-1], trials - begun)

    def _fastest(self) -> list[T]:
        return [one for one, _ in sorted(self._times, key=lambda pair: pair[1])[:WALKERS]]

    def _new(self, some: Sequence[T], most: int) -> list[T]:
        new: list[T] = []
        for one in some:
            key = self._key(one)
            if key not in self._seen and len(new) < most:
                self._seen.add(key)
                new.append(one)
        return new

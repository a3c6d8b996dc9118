"""Kernels that are places on a grid, with made-up estimates and times: what `tune` asks for can be told exactly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from mugraph.ir.program import TensorProgram
from mugraph.tune.measure import Refused
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Variant
from mugraph.verification.float_results import FloatResult

SIDE = 12
PROGRAM = cast(TensorProgram, SimpleNamespace(sizes={}, tensors=(), outputs={}))


def kernel(name: str) -> Any:
    return SimpleNamespace(name=name, standalone=lambda: name, inputs=(), settings=())


@dataclass
class Problem:
    """By a seed: the variants in the order of their rank, and what is around each. Some places share a text, some do
    not compile, some cannot be timed."""

    seed: int
    count: int = 40
    variants: list[Variant] = field(default_factory=list[Variant])
    asked: list[str] = field(default_factory=list[str])
    compiled: list[str] = field(default_factory=list[str])
    progress: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def __post_init__(self) -> None:
        drawn = random.Random(self.seed)
        self._us = {(x, y): drawn.uniform(2, 4) + abs(x - 7) + abs(y - 3) for x in range(SIDE) for y in range(SIDE)}
        self._estimates = {at: us * drawn.uniform(0.5, 2) for at, us in self._us.items()}
        self._refused = {at for at in self._us if drawn.random() < 0.1}
        self._broken = {at for at in self._us if drawn.random() < 0.1}
        places = sorted(self._us, key=lambda at: self._estimates[at])
        self.variants = [self.variant(at) for at in drawn.sample(places, self.count)]

    def variant(self, at: tuple[int, int]) -> Variant:
        text = f"{at[0]} {at[1] // 2 * 2 if at[0] == 5 else at[1]}"
        candidate = SimpleNamespace(estimate_us=self._estimates[at], topology=at, place=at)
        return Variant(cast(Any, candidate), kernel(text))

    def around(self, variant: Variant) -> list[Variant]:
        x, y = cast(Any, variant.candidate).place
        near = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
        return sorted((self.variant(at) for at in near if at in self._us), key=lambda one: one.candidate.estimate_us)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(
        self, kernels: Sequence[tuple[Any, Any]], rounds: int, **_: object
    ) -> Iterator[Summary | Refused]:
        for subject, _ in kernels:
            self.asked.append(subject.name)
            at = self._at(subject.name)
            yield Refused("it hangs") if at in self._refused else Summary(self._us[at], 0.01, rounds)

    def in_order(self, subjects: Sequence[tuple[Any, Any]]) -> Iterator[str | None]:
        self.compiled += [subject.name for subject, _ in subjects]
        yield from ["no" if self._at(subject.name) in self._broken else None for subject, _ in subjects]

    def compare(self, subjects: Sequence[Any], inputs: object) -> dict[str, Summary]:
        return {s.name: Summary(self._us[self._at(s.source)] * 1.01, 0.01, 9) for s in subjects}

    def test_kernel(self, one: Any, program: object) -> FloatResult:
        return FloatResult(True, None, 1e-4, 1e-4, "GPU")

    @staticmethod
    def _at(text: str) -> tuple[int, int]:
        x, y = map(int, text.split())
        return x, y


def proposals(problem: Problem, tune: Callable[..., Any], *, pool: bool) -> dict[str, object]:
    """Everything that a run of `tune` shows."""
    it = cast(Any, problem)
    found = tune(
        PROGRAM,
        problem.variants,
        it,
        it,
        it if pool else None,
        around=problem.around,
        progress=lambda tried, of: problem.progress.append((tried, of)),
    )
    found.test()
    return {
        "asked": problem.asked,
        "compiled": problem.compiled,
        "progress": [list(pair) for pair in problem.progress],
        "measured": [[one.kernel.name, us] for one, us in found.measured_us],
        "again": [[one.kernel.name, us] for one, us in found.again_us],
        "refused": [[one.kernel.name, reason] for one, reason in found.refused],
        "times": [one.kernel.name for one, _, _ in found.times],
    }

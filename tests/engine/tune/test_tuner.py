"""Tuning walks from the fastest of the first batch, measures nothing twice, and takes only what is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any, cast

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.neighbours import key, neighbours
from mugraph.search.schedules.sizes import ScheduleLimits, fits, schedules
from mugraph.search.schedules.tiles import Shape
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.measure import Refused
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import FEW, TRIED, Variant, first_of, tune
from mugraph.tune.tuners.model_then_walk import MEASURED, WALKS
from mugraph.units.search_units import single_units
from mugraph.verification.float_results import FloatResult

TARGET = TARGETS["h100"]
TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[16, 512], w=f16[512, 1024]
def gate(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[TensorProgram, Candidate]:
    """The program, and a poor schedule of its topology with a loop."""
    path = tmp_path_factory.mktemp("tune") / "model.py"
    path.write_text(TEXT)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    block = next(f.block for f in Search(unit.program, Limits(seconds=5)).run() if f.block.loop_axes)
    every = schedules(block, TARGET, ScheduleLimits(max_candidates=10_000))
    return unit.program, every[-1]


def variant(candidate: Candidate) -> Variant:
    return Variant(candidate, lower(candidate.block, candidate.schedule, target=TARGET))


def distance(schedule: Schedule) -> float:
    """Steps from some best schedule: a landscape without other valleys."""
    steps = abs(log2(schedule.num_warps / 4)) + abs(schedule.num_stages - 4) + schedule.swap
    tiles = {**dict(schedule.grid), **schedule.loops}
    pairs = zip(sorted(tiles.values()), (16, 64, 128), strict=False)
    return steps + sum(abs(log2(tile / best)) for tile, best in pairs)


@dataclass
class Landscape:
    """Stands for the measuring process: a kernel's time is its distance from the best."""

    schedules: dict[str, Schedule]
    asked: list[str] = field(default_factory=list[str])

    def measure_kernel(self, subject: Any, inputs: object, rounds: int) -> Summary:
        self.asked.append(subject.source)
        return Summary(1.0 + distance(self.schedules[subject.source]), 0.01, rounds)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(self, kernels: Sequence[tuple[Any, Any]], rounds: int, **_: object) -> Iterator[Summary]:
        for subject, inputs in kernels:
            yield self.measure_kernel(subject, inputs, rounds)

    def compare(self, subjects: Sequence[Any], inputs: object) -> dict[str, Summary]:
        return {s.name: Summary(1.0 + distance(self.schedules[s.source]), 0.01, 9) for s in subjects}


@dataclass
class Judge:
    wrong: set[str]
    asked: list[str] = field(default_factory=list[str])

    def test_kernel(self, kernel: Any, program: TensorProgram) -> FloatResult:
        self.asked.append(kernel.standalone())
        passed = kernel.standalone() not in self.wrong
        return FloatResult(passed, None if passed else "wrong", 1e-4, 1e-4, "GPU")


def walk(
    program: TensorProgram, start: Candidate, wrong: set[str] | None = None, worth_us: float | None = None
) -> tuple[Any, Landscape]:
    land = Landscape({})

    def known(one: Variant) -> Variant:
        land.schedules[one.kernel.standalone()] = one.candidate.schedule
        return one

    def around(one: Variant) -> list[Variant]:
        near: list[Variant] = []
        for candidate in neighbours(one.candidate, TARGET):
            try:
                near.append(known(variant(candidate)))
            except Rejected:
                continue
        return near

    judge = cast(Any, Judge(wrong or set()))
    tuned = tune(program, [known(variant(start))], cast(Any, land), judge, around=around, worth_us=worth_us)
    return tuned, land


def test_neighbours_are_one_step_away_and_fit(found: tuple[TensorProgram, Candidate]) -> None:
    _, start = found
    near = neighbours(start, TARGET)
    assert near
    assert len({key(candidate.schedule) for candidate in near}) == len(near)
    shape = Shape(start.block)
    for candidate in near:
        a, b = start.schedule, candidate.schedule
        steps = sum(
            (
                sum(dict(a.grid)[axis] != tile for axis, tile in b.grid),
                sum(a.loops[axis] != tile for axis, tile in b.loops.items()),
                a.swap != b.swap,
                a.precision != b.precision,
                a.num_warps != b.num_warps,
                a.num_stages != b.num_stages,
            )
        )
        assert steps == 1
        assert fits(shape, b, TARGET, ScheduleLimits())
    assert [c.estimate_us for c in near] == sorted(c.estimate_us for c in near)


def test_the_walk_improves_on_where_it_starts(found: tuple[TensorProgram, Candidate]) -> None:
    program, start = found
    tuned, land = walk(program, start)
    assert len(land.asked) == len(set(land.asked)) == tuned.measured
    assert tuned.measured <= MEASURED + sum(WALKS)
    best = tuned.times[0][0].candidate.schedule
    assert distance(best) <= distance(start.schedule) - 2  # a step in each of two rounds


def test_a_wrong_kernel_is_passed_over_however_fast(found: tuple[TensorProgram, Candidate]) -> None:
    program, start = found
    first, _ = walk(program, start)
    winner = first.times[0][0].kernel.standalone()
    second, _ = walk(program, start, {winner})
    second.test()
    assert [v.kernel.standalone() for v, _ in second.refused] == [winner]
    assert winner not in [v.kernel.standalone() for v, _, _ in second.times]


def test_what_cannot_be_measured_together_keeps_its_first_time(
    found: tuple[TensorProgram, Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, start = found
    monkeypatch.setattr(
        Landscape, "compare", lambda self, subjects, inputs: {s.name: Refused("out of memory") for s in subjects}
    )
    tuned, _ = walk(program, start)
    best = min(us for _, us in tuned.measured_us)
    assert tuned.again_us[0][1] == best
    assert tuned.times[0][1].median_us == best


def test_a_topology_that_is_always_wrong_is_given_up(found: tuple[TensorProgram, Candidate]) -> None:
    program, start = found
    _, land = walk(program, start)
    judge = Judge(set(land.schedules))
    variants = [variant(one) for one in (start, *neighbours(start, TARGET))]
    land.schedules.update({one.kernel.standalone(): one.candidate.schedule for one in variants})
    judge.wrong.update(land.schedules)
    tuned = tune(program, variants, cast(Any, land), cast(Any, judge))
    assert len(variants) > TRIED
    assert tuned.times == ()
    assert len(judge.asked) == TRIED
    assert len(tuned.refused) == len(variants)
    assert sum("other schedules of its topology" in reason for _, reason in tuned.refused) == len(variants) - TRIED


def test_what_is_far_slower_than_it_has_to_be_is_not_tuned(found: tuple[TensorProgram, Candidate]) -> None:
    """No walk begins, and none is measured once more: times were 1.5 times what would be of use."""
    program, start = found
    tuned, _ = walk(program, start)
    best, first = tuned.best_us, 1.0 + distance(start.schedule)
    assert first > best
    cut_off, asked = walk(program, start, worth_us=first / 1.6)
    assert cut_off.measured == len(asked.asked) == 1
    assert cut_off.best_us == first
    goes_on, _ = walk(program, start, worth_us=first / 1.4)
    assert goes_on.best_us == best


def test_where_one_is_as_fast_as_any_can_be_no_other_is_measured(found: tuple[TensorProgram, Candidate]) -> None:
    program, start = found
    variants = [variant(one) for one in (start, *neighbours(start, TARGET))]
    land = Landscape({one.kernel.standalone(): one.candidate.schedule for one in variants})
    best = min(1.0 + distance(one.candidate.schedule) for one in variants[:FEW])
    for enough_us, count in ((best / 1.03, FEW), (1e-3, len(variants))):
        land.asked.clear()
        tuned = tune(program, variants, cast(Any, land), cast(Any, Judge(set())), first=FEW, enough_us=enough_us)
        assert tuned.measured == len(land.asked) == min(count, MEASURED)
        assert tuned.times[0][1].median_us <= best


def test_where_all_are_expected_to_be_slow_a_few_are_measured_first(found: tuple[TensorProgram, Candidate]) -> None:
    program, start = found
    variants = [variant(one) for one in (start, *neighbours(start, TARGET))]
    land = Landscape({one.kernel.standalone(): one.candidate.schedule for one in variants})
    least = min(one.candidate.estimate_us for one in variants)
    assert first_of(variants, least / 1.9) == MEASURED
    assert first_of(variants, least / 2.1) == FEW < len(variants)
    for worth_us, count in ((1e-3, FEW), (1e3, len(variants))):
        tuned = tune(program, variants, cast(Any, land), cast(Any, Judge(set())), worth_us=worth_us, first=FEW)
        assert tuned.measured == min(count, MEASURED)

"""The space that tuners search: what it has are the schedules that the search enumerates, no more and no fewer."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.cost import mcfuser_us
from mugraph.search.schedules.neighbours import WALKED, neighbours
from mugraph.search.schedules.sizes import enumerate_schedules, fits
from mugraph.search.schedules.space import ScheduleSpace
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.schedules.tiles import Shape
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units

TARGET = TARGETS["h100"]
TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[512, 1024], w=f32[1024, 1024]
def product(x, w):
    return x @ w


# mugraph: x=f16[16, 512], w=f16[512, 1024]
def gate(x, w):
    return F.silu(x @ w)


# mugraph: x=f32[32, 64, 27, 27], w=f32[96, 64, 5, 5]
def convolution(x, w):
    return F.conv2d(x, w, padding=2)


# mugraph: x=f16[64, 1000]
def softmax(x):
    return torch.softmax(x, -1)
"""
NAMES = ("product", "gate", "convolution", "softmax")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Candidate]]:
    """The best candidates of each program, of one kernel and of two."""
    path = tmp_path_factory.mktemp("space") / "model.py"
    path.write_text(TEXT)
    every: dict[str, list[Candidate]] = {}
    for region in trace_file(path).regions:
        (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
        blocks = [one.block for one in Search(unit.program, Limits(seconds=5)).run()]
        every[region.function] = kernel_candidates(blocks, TARGET)[:24]
    return every


def same(a: Candidate, b: Candidate) -> bool:
    """But for the order of axes with as many blocks as one another."""
    return all(
        frozenset(x.schedule.grid) == frozenset(y.schedule.grid) and _rest(x.schedule) == _rest(y.schedule)
        for x, y in zip(a.kernels, b.kernels, strict=True)
    ) and a.estimate_us == pytest.approx(b.estimate_us)


def _rest(schedule: Schedule) -> tuple[object, ...]:
    stages = schedule.num_stages if schedule.loops else 0  # without a loop there is nothing to overlap
    return schedule.loops, schedule.swap, schedule.num_warps, stages, schedule.precision, schedule.library


@pytest.mark.parametrize("name", NAMES)
def test_has_the_candidates_and_their_neighbours(found: dict[str, list[Candidate]], name: str) -> None:
    space = ScheduleSpace(found[name], TARGET)
    for candidate in found[name]:
        for one in (candidate, *neighbours(candidate, TARGET)):
            point = space.point(one)
            assert point is not None
            assert space.is_valid(point)
            assert same(space.candidate(point), one)
            assert space.estimate_us(point) == pytest.approx(one.estimate_us)


@pytest.mark.parametrize("name", NAMES)
def test_points_are_all_that_fit(found: dict[str, list[Candidate]], name: str) -> None:
    candidate = next(one for one in found[name] if one.then is None)
    space, shape = ScheduleSpace([candidate], TARGET), Shape(candidate.block)
    limits = WALKED
    fitting = [one for one in enumerate_schedules(shape, limits) if fits(shape, one, TARGET, limits)]
    points = list(space.points())
    assert len({space.key(point) for point in points}) == len(points)
    assert len(points) == len(fitting)
    made = {(frozenset(s.grid), tuple(s.loops.items()), *_rest(s)[1:]) for s in map(_schedule_in(space), points)}
    assert made == {(frozenset(s.grid), tuple(s.loops.items()), *_rest(s)[1:]) for s in fitting}
    assert space.mcfuser_us(points[0]) == mcfuser_us(candidate.block, _schedule_in(space)(points[0]), TARGET)


def _schedule_in(space: ScheduleSpace):
    return lambda point: space.candidate(point).schedule


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 10_000))
def test_samples_and_steps(found: dict[str, list[Candidate]], name: str, seed: int) -> None:
    """A sample is valid, and its own point; a step is valid only where its kernels fit the device."""
    space, drawn = ScheduleSpace(found[name], TARGET), random.Random(seed)
    point = space.sample(drawn)
    assert point is not None
    candidate = space.candidate(point)
    again = space.point(candidate)
    assert again is not None
    assert space.key(again) == space.key(point)
    at = drawn.randrange(len(space.parameters))
    for value in space.parameters[at].adjacent[point[at]]:
        near = (*point[:at], value, *point[at + 1 :])
        if not space.is_valid(near):
            with pytest.raises(ValueError, match="not a valid point"):
                space.candidate(near)
            continue
        for kernel in space.candidate(near).kernels:
            assert kernel.schedule.library or fits(Shape(kernel.block), kernel.schedule, TARGET, WALKED)


def test_what_a_topology_lacks_means_nothing(found: dict[str, list[Candidate]]) -> None:
    split = next(one for one in found["product"] if one.then is not None)
    whole = next(one for one in found["product"] if one.then is None)
    space = ScheduleSpace([whole, split], TARGET)
    assert space.parameters[0].values == (0, 1)
    point = space.point(whole)
    assert point is not None
    at = next(at for at, one in enumerate(space.parameters) if one.name == "then warps")
    other = (*point[:at], (point[at] + 1) % len(space.parameters[at].values), *point[at + 1 :])
    assert space.key(other) == space.key(point)
    assert space.candidate(other) == space.candidate(point)


def test_axes_are_factorised_into_blocks_and_tile(found: dict[str, list[Candidate]]) -> None:
    whole = next(one for one in found["product"] if one.then is None and one.block.loops)
    kinds = {one.name: (one.kind, one.values) for one in ScheduleSpace([whole], TARGET).parameters}
    assert kinds["tile of m"] == ("factorisation", ((2, 256), (4, 128), (8, 64), (16, 32), (32, 16)))
    assert kinds["warps"] == ("discrete", (1, 2, 4, 8, 16))
    assert kinds["precision"][0] == kinds["swap"][0] == "categorical"

"""Sums of sizes: which numbers are one, and that nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mugraph.ir.ranges import (
    FIXED,
    DynamicSize,
    Point,
    Product,
    SizeRange,
    largest_point,
    product_of,
)
from mugraph.ir.sized_arguments import multiple, product_in
from mugraph.ir.sums import Sum

ONE = (SizeRange("t", 1, 256),)
TWO = (SizeRange("t", 1, 16), SizeRange("t0", 1, 300))


def points_of(ranges: tuple[SizeRange, ...]) -> list[Point]:
    return [largest_point(ranges), *DynamicSize(ranges[0], others=ranges[1:]).points]


@given(
    times=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    offset=st.integers(-1, 40),
    factor=st.integers(1, 12),
    power=st.integers(0, 1),
)
def test_every_sum_is_found_again(times: tuple[int, int], offset: int, factor: int, power: int) -> None:
    assume(any(times) or offset >= 0)  # no size is negative everywhere

    def value(point: Point) -> int:
        return factor * point["t"] ** power * (times[0] * point["t"] + times[1] * point["t0"] + offset)

    points = points_of(TWO)
    values = [value(point) for point in points]
    found = product_of(values, points)
    if min(values) < 1:
        assert found is None or found == FIXED
        return
    assert found is not None
    elsewhere = [{"t": t, "t0": t0} for t in (1, 2, 5, 16) for t0 in (1, 7, 33, 300)]
    if len({*values}) > 1:
        assert [found.at(point) for point in elsewhere] == [value(point) for point in elsewhere]
        called = {"t": "t", "t0": "t0"}
        for inner in (False, True):
            assert [eval(found.text(called, inner=inner), {}, dict(point)) for point in elsewhere] == [
                value(point) for point in elsewhere
            ]
        assert product_in(multiple(found)) == found


NO_SUMS: dict[str, Callable[[int], int]] = {
    "padded": lambda t: -(-t // 8) * 8,
    "at least": lambda t: max(t, 40),
    "half": lambda t: t // 2 + 1,
    "remainder": lambda t: t % 7 + t,
    "square and one": lambda t: t * t + 1,
    "falling": lambda t: 300 - t,
    "bits": lambda t: t.bit_length() + 1,
}


@pytest.mark.parametrize("value", NO_SUMS.values(), ids=NO_SUMS)
def test_what_is_no_sum_is_not_taken_for_one(value: Callable[[int], int]) -> None:
    points = points_of(ONE)
    assert product_of([value(point["t"]) for point in points], points) is None


def test_a_sum_that_too_few_sizes_tell_of_is_not_believed() -> None:
    points: list[Point] = [{"t": 9}, {"t": 5}]
    assert product_of([10, 6], points) is None
    assert product_of([10, 6, 3], [*points, {"t": 2}]) == Product(1, (), (Sum((("t", 1),), 1),))


@given(
    times=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    offset=st.integers(-1, 40),
    t=st.integers(1, 60),
    t0=st.integers(1, 60),
)
def test_a_size_is_read_off_the_sum_it_is_in(times: tuple[int, int], offset: int, t: int, t0: int) -> None:
    one = Sum((("t", times[0]), ("t0", times[1])), offset)
    text = one.solved("t0", "total", {"t": "t"})
    assert eval(text, {}, {"total": one.at({"t": t, "t0": t0}), "t": t}) == t0

"""The time of a file: what counts, and when it is over."""

from __future__ import annotations

from math import inf

from mugraph.options import LEAST_S, Bounds
from mugraph.solve.filetime import FileTime

from tests.support.clock import Clock


class Exact(Clock):
    def monotonic(self) -> float:
        return self.seconds


def test_what_is_not_searching_does_not_count() -> None:
    clock = Exact()
    time = FileTime(10.0, clock.monotonic)
    clock.seconds += 100
    assert not time.is_over
    with time.counting():
        clock.seconds += 6
        with time.counting():
            clock.seconds += 3
        assert not time.is_over
    clock.seconds += 100
    assert not time.is_over
    with time.counting():
        clock.seconds += 1
        assert time.is_over
    assert time.is_over
    assert "10 s" in time.words
    assert "--file-budget" in time.words


def test_seconds_for_which_others_have_the_device_do_not_count() -> None:
    clock, waited = Exact(), Exact()
    time = FileTime(10.0, clock.monotonic, waited.monotonic)
    with time.counting():
        clock.seconds += 6
        waited.seconds += 4
        clock.seconds += 4
        assert time.left_s == 4
        assert time.stops_at == clock.seconds + 4, "other processes go by the clock"
    waited.seconds += 100
    assert time.left_s == 4
    assert not time.is_over


def test_tracing_counts_but_leaves_time_to_search() -> None:
    clock = Exact()
    time = FileTime(30.0, clock.monotonic)
    time.traced(6.0)
    assert time.left_s == 24
    slow = FileTime(30.0, clock.monotonic)
    slow.traced(100.0)
    assert slow.left_s == 20
    without = FileTime(clock=clock.monotonic)
    without.traced(100.0)
    assert not without.is_over


def test_who_is_at_work_a_while_after_its_end_is_stopped() -> None:
    clock = Exact()
    time = FileTime(10.0, clock.monotonic)
    with time.counting():
        clock.seconds += 7
        assert time.left_s == 3
        clock.seconds += 3.5
        assert time.is_over
        assert not time.is_long_over
        clock.seconds += 1
        assert time.is_long_over
    assert "not finished" in time.given_up_words
    assert "--file-budget" in time.given_up_words


def test_a_search_that_begins_late_has_what_is_left() -> None:
    asked = Bounds(seconds=8.0)
    assert asked.within(20.0) == asked
    assert asked.within(3.0).seconds == 3.0
    assert asked.within(-2.0).seconds == LEAST_S
    assert Bounds(seconds=0.5).within(0.1).seconds == 0.5


def test_without_a_limit_it_is_never_over() -> None:
    clock = Exact()
    time = FileTime(clock=clock.monotonic)
    with time.counting():
        clock.seconds += 1e9
    assert not time.is_over
    assert not time.is_long_over


def test_it_says_when_who_is_at_work_hands_over_and_that_is_before_he_is_stopped() -> None:
    clock = Exact()
    time = FileTime(10.0, clock.monotonic)
    clock.seconds += 5
    with time.counting():
        clock.seconds += 7
        stops_at = time.stops_at
        clock.seconds = stops_at
        assert time.is_over
        assert not time.is_long_over
        clock.seconds = stops_at + 0.9
        assert not time.is_long_over
        clock.seconds = stops_at + 1.1
        assert time.is_long_over
    assert FileTime(clock=clock.monotonic).stops_at == inf

"""The time of a file: what counts, and when it is over."""

from __future__ import annotations

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


def test_without_a_limit_it_is_never_over() -> None:
    clock = Exact()
    time = FileTime(clock=clock.monotonic)
    with time.counting():
        clock.seconds += 1e9
    assert not time.is_over

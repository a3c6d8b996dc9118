"""Which sizes of a range are timed, and for which of them a region is then said to be faster."""

from __future__ import annotations

import pytest
from mugraph.events import Timing
from mugraph.ir.ranges import SizeRange
from mugraph.sizes.timing import MOST, between, first_sizes, next_size, of_sizes, spans_of

SIZE = SizeRange("b", 1, 64)


def timed(size: SizeRange, faster: set[int]) -> dict[int, bool]:
    """All that is asked for, where the kernel is faster at the given sizes alone."""
    gains: dict[int, bool] = {}
    while (at := next_size(size, gains)) is not None:
        assert at not in gains
        assert size.least <= at <= size.largest
        gains[at] = at in faster
    return gains


def timing(speedup: float | None) -> Timing:
    after = 10.0 / speedup if speedup else None
    peers = {"eager": 10.0, "torch.compile": 12.0}
    return Timing(10.0, after, speedup, peers, source="measured", device="a GPU", method="graphs")


def test_the_ends_and_a_size_in_the_middle() -> None:
    assert first_sizes(SIZE) == (64, 1, 8)
    assert first_sizes(SizeRange("b", 1, 2)) == (2, 1)
    assert first_sizes(SizeRange("b", 48, 60)) == (60, 48, 54)
    assert timed(SIZE, {1, 8, 64}) == {64: True, 1: True, 8: True}
    assert timed(SIZE, set()) == {64: False, 1: False, 8: False}


def test_a_border_is_looked_for_between_neighbours_that_differ() -> None:
    few = set(range(1, 17))
    assert sorted(timed(SIZE, few)) == [1, 8, 16, 32, 64]
    assert sorted(timed(SIZE, set(range(3, 65)))) == [1, 2, 4, 8, 64]
    assert len(timed(SizeRange("tokens", 1, 1 << 20), few)) == MOST
    assert between(8, 9) is None


@pytest.mark.parametrize(
    ("speedups", "words"),
    [
        ({1: 2.0, 8: 1.5, 64: 1.1}, "b = 1..64"),
        ({1: 2.0, 8: 1.5, 16: 1.2, 32: 1.0, 64: 0.8}, "b up to 16"),
        ({1: 1.0, 2: 0.9, 4: 1.2, 8: 1.5, 64: 1.1}, "b from 4"),
        ({1: 1.0, 8: 1.5, 64: None}, "b = 8"),
        ({1: 2.0, 8: 1.0, 16: 1.0, 64: 1.1}, "b = 1 and b = 64"),
        ({1: 0.9, 8: 1.0, 64: None}, ""),
    ],
)
def test_sizes_between_two_that_gain_are_taken_to(speedups: dict[int, float | None], words: str) -> None:
    found = of_sizes(SIZE, {size: timing(ratio) for size, ratio in reversed(speedups.items())})
    assert [row.size for row in found.sizes] == sorted(speedups)
    assert SIZE.words(spans_of(found.sizes)) == words
    gaining = [size for size, ratio in speedups.items() if ratio and ratio > 1]
    assert found.at == (max(gaining) if gaining else 64)
    assert found.speedup == speedups[found.at or 0]
    assert found.peers_us == found.sizes[0].peers_us

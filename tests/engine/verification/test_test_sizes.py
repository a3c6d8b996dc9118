"""The small sizes that graphs are tested at: every part at least 2, other ones the second time, and not too many
elements. Of axes that only tell elements apart there are two blocks, both times, where there would be too many."""

from __future__ import annotations

from math import prod

import pytest
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search
from mugraph.verification.sizes import MOST_ELEMENTS, MOST_WHOLE, assignments, grid_axes
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.workloads import Builder
from tests.support.clock import slow_clock


def pooled(windows: int) -> TensorProgram:
    """Maps of channels, normed over them and over the places of several windows, as pooling after pooling has them."""
    axes = {f"r{number}": 2 for number in range(windows)}
    b = Builder("pooled", b=64, c=16, m=32, n=32, **axes)
    x = b.input("x", "b", "c", "m", "n", *axes)
    e = b.exp("e", x)
    shares = b.div("shares", e, b.sum("total", e, "c"))
    return b.program(b.sum("y", shares, *axes), "b", "c", "m", "n")


@pytest.mark.parametrize("windows", [1, 6])
def test_parts_are_two_or_more_and_differ(windows: int) -> None:
    program = pooled(windows)
    with slow_clock():
        block = next(iter(Search(program, Limits(seconds=2.0)).run())).block
    one, two = assignments(program, [(block, grid_axes(block))])
    for axis in program.sizes:
        tiles = [(found.tiles[axis], -(-found.sizes[axis] // found.tiles[axis])) for found in (one, two)]
        assert all(tile >= 2 for tile, _ in tiles)
        assert one.sizes[axis] != two.sizes[axis]
        assert tiles[0][0] != tiles[1][0]
        if axis in grid_axes(block):
            few = windows == 6 and axis in "bmn"  # which only tell elements apart
            assert tiles[0][1] == tiles[1][1] == 2 if few else 2 <= tiles[0][1] < tiles[1][1]
            assert all(found.sizes[axis] % found.tiles[axis] for found in (one, two)) or not few


def test_axes_that_are_reduced_keep_their_parts() -> None:
    """Where there are too many elements."""
    program = pooled(6)
    with slow_clock():
        block = next(iter(Search(program, Limits(seconds=2.0)).run())).block
    for found in assignments(program, [(block, ("b", "c", "m", "n"))]):
        assert found.sizes["c"] >= 4
        assert {found.sizes[axis] for axis in "bmn"} in ({3}, {5})


def test_many_axes_are_shorter() -> None:
    program = pooled(6)
    with slow_clock():
        block = next(iter(Search(program, Limits(seconds=2.0)).run())).block
    for found in assignments(program, [(block, grid_axes(block))]):
        whole = [found.sizes[axis] for axis in program.sizes if axis not in grid_axes(block)]
        assert max(whole) < MOST_WHOLE
        assert prod(whole) < MOST_ELEMENTS
    assert verify_topologies(program, [(block, None)]).passed

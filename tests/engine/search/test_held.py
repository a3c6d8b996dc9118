"""Rows that no thread block holds: told without a search, and computed by several kernels."""

from __future__ import annotations

import pytest
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.schedules.held import is_too_large_to_hold
from mugraph.search.schedules.sizes import Looks, ScheduleLimits, schedules
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.workloads import Builder, rmsnorm_linear
from tests.support.clock import slow_clock

H100 = TARGETS["h100"]


def group_norm(channels: int, pixels: int) -> TensorProgram:
    """sigmoid(x * s) normed over channels and pixels, times a weight of each channel."""
    b = Builder("group_norm", b=128, k=8, c=channels, n=pixels)
    x, s, w = b.input("x", "b", "k", "c", "n"), b.input("s", "k", "c"), b.input("w", "k", "c")
    active = b.unary("sigmoid", "active", b.mul("scaled", x, s))
    count = b.const("share", 1 / (channels * pixels))
    mean = b.mul("mean", b.sum("total", active, "c", "n"), count)
    centred = b.add("centred", active, b.mul("negated", mean, b.const("minus_one", -1.0)))
    square = b.mul("mean_square", b.sum("squares", b.mul("square", centred, centred), "c", "n"), count)
    root = b.sqrt("root", b.add("shifted", square, b.const("eps", 1e-5)))
    return b.program(b.mul("y", b.div("normed", centred, root), w), "b", "k", "c", "n")


def deviation(pixels: int) -> TensorProgram:
    """The root of the mean square of what is centred: of a row that is read twice."""
    b = Builder("deviation", m=256, n=pixels)
    x, count = b.input("x", "m", "n"), b.const("share", 1 / pixels)
    mean = b.mul("mean", b.sum("total", x, "n"), count)
    centred = b.add("centred", x, b.mul("negated", mean, b.const("minus_one", -1.0)))
    squares = b.sum("squares", b.mul("square", centred, centred), "n")
    return b.program(b.sqrt("root", b.mul("mean_square", squares, count)), "m")


def softmax_of_values(row: int) -> TensorProgram:
    """The sum of the exponentials is taken out of the product."""
    b = Builder("softmax_of_values", m=64, n=row, d=64)
    x, v = b.input("x", "m", "n"), b.input("v", "n", "d")
    e = b.exp("e", x)
    return b.program(b.dot("y", b.div("shares", e, b.sum("total", e, "n")), v, "n"), "m", "d")


def softmax(row: int) -> TensorProgram:
    b = Builder("softmax", m=64, n=row)
    x, gain, shift = b.input("x", "m", "n"), b.input("gain", "n"), b.input("shift", "n")
    e = b.exp("e", b.add("logits", b.mul("scaled", x, gain), shift))
    return b.program(b.div("y", e, b.sum("total", e, "n")), "m", "n")


TOO_LARGE = [group_norm(4, 64516), softmax(393_216), deviation(1 << 18)]
NOT_TOO_LARGE = [
    *(group_norm(4, 256), softmax(4096), deviation(4096)),
    *(rmsnorm_linear(m=64, h=1 << 17), softmax_of_values(1 << 17)),
]


@pytest.mark.parametrize("program", TOO_LARGE, ids=lambda program: program.name)
def test_what_is_too_large_has_no_kernel(program: TensorProgram) -> None:
    assert is_too_large_to_hold(program)
    with slow_clock():
        blocks = [found.block for found in Search(program, Limits(seconds=0.5, max_topologies=8)).run()]
    assert blocks
    assert not kernel_candidates(blocks, H100)


@pytest.mark.parametrize("program", NOT_TOO_LARGE, ids=lambda program: program.name)
def test_what_has_a_kernel_is_not_too_large(program: TensorProgram) -> None:
    with slow_clock():
        blocks = [found.block for found in Search(program, Limits(seconds=0.5, max_topologies=8)).run()]
    assert kernel_candidates(blocks, H100)
    assert not is_too_large_to_hold(program)


def test_a_row_that_is_not_returned_is_looped_over() -> None:
    b = Builder("sums", m=64, n=1 << 20)
    assert not is_too_large_to_hold(b.program(b.sum("y", b.input("x", "m", "n"), "n"), "m"))


def test_a_row_that_few_warps_cannot_hold_is_looked_at_with_more() -> None:
    with slow_clock():
        block = next(iter(Search(softmax(16_384), Limits(seconds=1.0)).run())).block
    few, more = (schedules(block, H100, ScheduleLimits(num_warps=(warps,))) for warps in (4, 8))
    assert not few
    assert more
    look = Looks(H100).at(block)
    assert look is not None
    assert look.schedule.num_warps == 8


def test_a_long_norm_is_several_kernels() -> None:
    """Its mean, its root and what is normed."""
    program = group_norm(4, 64516)
    with slow_clock():
        blocks = [found.block for found in Search(program, Limits(seconds=0.5, max_topologies=2)).run()]
        search = KernelGraphs(program, H100, GraphLimits(max_parts=8), blocks=blocks, seconds=60.0)
        found = next(iter(search.run()))
    best = found.candidates[0]
    assert len(best.kernels) == 3
    assert search.stats.parts < 8
    verdict = verify_topologies(program, [(kernel.block, None) for kernel in best.kernels])
    assert verdict.passed, verdict.reason

"""Rows that no thread block holds: told without a search, and computed by several kernels."""

from __future__ import annotations

import pytest
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.vain import is_in_vain
from mugraph.search.schedules.held import holds_rows, is_too_large_to_hold
from mugraph.search.schedules.sizes import Looks, ScheduleLimits, schedules
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.row_programs import deviation, group_norm, softmax, softmax_of_values
from tests.engine.search.workloads import Builder, rmsnorm_linear
from tests.support.clock import slow_clock

H100 = TARGETS["h100"]


TOO_LARGE = [group_norm(4, 64516), softmax(393_216), deviation(1 << 18)]
NOT_TOO_LARGE = [
    *(group_norm(4, 256), softmax(4096), deviation(4096)),
    *(rmsnorm_linear(m=64, h=1 << 17), softmax_of_values(1 << 17)),
]


@pytest.mark.parametrize("program", TOO_LARGE, ids=lambda program: program.name)
def test_what_is_too_large_has_no_kernel_of_its_own(program: TensorProgram) -> None:
    """A variance is joined from those of parts (test_moments.py), by a second kernel."""
    assert is_too_large_to_hold(program)
    with slow_clock():
        blocks = [found.block for found in Search(program, Limits(seconds=0.5, max_topologies=8)).run()]
    assert blocks
    assert all(len(candidate.kernels) == 2 for candidate in kernel_candidates(blocks, H100))
    assert is_in_vain(program) == (program.name == "softmax")


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
    """Sums of its parts, its mean and its root of them, and what is normed."""
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


def test_what_may_be_tiled_as_one_likes_holds_no_rows() -> None:
    """A search for one kernel then goes on, whatever its first topologies' coarse tiles are."""
    assert all(holds_rows(program) for program in (group_norm(4, 256), softmax(4096), deviation(4096)))
    assert not any(holds_rows(program) for program in (rmsnorm_linear(m=64, h=4096), softmax_of_values(1 << 17)))

"""Splits of what the search finds: right kernels for every cut, FlashDecoding and split-K among them, chosen where the
grid is small and not elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Candidate, Loop, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block, check_candidate
from mugraph.search import Limits, topologies
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.sizes import best, schedules
from mugraph.search.schedules.split_schedules import kernel_candidates, split_candidates, with_then
from mugraph.search.schedules.splits import Cut, cuts, part_counts
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topologies, verify_topology

from tests.engine.search.workloads import attention, gated_mlp, gemm_chain, lora, rmsnorm_linear

H200 = TARGETS["h200"]
SMALL = (
    rmsnorm_linear(32, 64, 32),
    gated_mlp(32, 64, 32),
    lora(32, 64, 32, 16),
    attention(2, 32, 64, 16),
    gemm_chain(2, 32, 64, 64, 32),
)


_found: dict[tuple[object, ...], list[BlockGraph]] = {}


def blocks_of(program: TensorProgram, most: int = 16) -> list[BlockGraph]:
    key = (program.name, *program.sizes.items(), most)
    if key not in _found:
        limits = Limits(seconds=2.0, max_topologies=most)
        _found[key] = [found.block for found in topologies(program, limits)]
    return _found[key]


def cuts_of(program: TensorProgram, most: int = 16) -> list[Cut]:
    return [cut for block in blocks_of(program, most) for cut in cuts(block)]


def kinds(block: BlockGraph) -> list[Kind]:
    return sorted((op.kind for op in block.block_ops), key=str)


@pytest.mark.parametrize("program", SMALL, ids=lambda program: program.name)
def test_every_cut_computes_the_program(program: TensorProgram) -> None:
    found = cuts_of(program)
    assert found
    for cut in found[:: max(1, len(found) // 8)]:
        for looped in (True, False):
            kernels = cut.at(2, looped=looped)
            assert [violation for block in kernels for violation in check_block(block)] == []
            verdict = verify_topologies(program, [(block, None) for block in kernels], seed=5)
            assert verdict.passed, verdict.reason
            # Two unequal sizes, several parts at each.
            first, second = (sizes[cut.split] for sizes in verdict.sizes)
            assert 2 <= first < second


@pytest.mark.parametrize("program", SMALL, ids=lambda program: program.name)
def test_each_kernel_of_a_cut_computes_its_share(program: TensorProgram) -> None:
    """Without loops a kernel's operators are a tensor program; the one with a loop computes the same."""
    for cut in cuts_of(program)[:6]:
        flat, second = cut.at(2, looped=False)
        looped, _ = cut.at(2)
        if not flat.loops:
            assert verify_topology(_program(flat), looped, seed=3).passed
        if not second.loops:
            assert verify_topology(_program(second), second, seed=3).passed


def _program(block: BlockGraph) -> TensorProgram:
    stores = {op.inputs[0]: block.tensor(op.tensor) for op in block.ops if op.kind is Kind.STORE}
    ops = tuple(op for op in block.ops if op.kind is not Kind.STORE)
    return TensorProgram(block.name, block.sizes, block.inputs, ops, stores)


def test_flash_decoding_is_among_the_splits_of_attention() -> None:
    """Mirage v1, Figure 4b: parts of the keys in parallel, then their sums added and divided."""
    for cut in cuts_of(attention(), 64):
        if cut.axis != "n":
            continue
        first, second = cut.at(16)
        if kinds(second) == sorted([Kind.SUM, Kind.SUM, Kind.DIV], key=str):
            sums = [op for op in first.ops if op.kind is Kind.ACCUM]
            shapes = sorted(first.tensor(op.tensor).axes for op in first.ops if op.kind is Kind.STORE)
            assert len(sums) == 2
            assert shapes == [("n_split", "b", "q"), ("n_split", "b", "q", "e")]
            assert first.sizes["n_split"] * first.sizes["n_part"] == 4096
            assert first.loops == (Loop("n_part"),)
            assert cut.at(16, looped=False)[0].loops == ()
            return
    raise AssertionError("no split of attention adds two sums and divides")


def test_split_k_with_a_scale_after_it() -> None:
    """Mirage v1, Figure 10b's shape: one pass over the rows makes the product's parts and the norm's."""
    found = [cut for cut in cuts_of(rmsnorm_linear(), 64) if len(cut.parts) == 2]
    assert found
    first, second = found[0].at(4)
    handed = {first.tensor(op.tensor) for op in first.ops if op.kind is Kind.STORE}
    assert {tensor.dtype for tensor in handed} == {"f32"}
    assert handed <= set(second.inputs)
    assert {tensor.name for tensor in second.outputs} == {"out"}


def test_a_loop_that_runs_twice_is_not_split() -> None:
    """Softmax that divides before the product needs the sum in a second pass."""
    for block in blocks_of(attention(2, 32, 64, 16), 64):
        dependent = {op.name for op in block.ops if op.kind is Kind.ACCUM}
        for op in block.ops:
            if dependent & set(op.inputs):
                dependent.add(op.name)
        again = any(op.kind is Kind.ACCUM and set(op.inputs) & dependent for op in block.ops)
        if again:
            assert all(not set(cut.first[0]) & dependent for cut in cuts(block) if cut.axis == "n")


def test_parts_divide_the_axis_and_are_not_too_short() -> None:
    assert part_counts(4096) == [2, 4, 8, 16, 32, 64]
    assert part_counts(96) == [2, 4]
    assert part_counts(80, least=16) == [2, 4]
    assert part_counts(63) == []
    (cut, *_) = cuts_of(attention(2, 32, 64, 16))
    with pytest.raises(ValueError, match="divide"):
        cut.at(7)


def _splits(found: Iterable[Candidate]) -> list[Candidate]:
    return [candidate for candidate in found if candidate.then is not None]


@pytest.mark.parametrize("target", ["h100", "h200"])
@pytest.mark.parametrize(
    "program",
    [attention(2, 256, 4096, 64), attention(2, 8, 8192, 128), attention(32, 16, 4096, 64)],
    ids=["gqa_attention", "gqa_decode", "mha"],
)
def test_a_small_grid_is_split(program: TensorProgram, target: str) -> None:
    """Measured on H200, one kernel against two: 37.7 and 8.8 us for the first with normed queries and keys."""
    found = kernel_candidates(blocks_of(program, 64), TARGETS[target])
    first = found[0]
    assert first.then is not None
    assert first.block.sizes["n_split"] >= 4
    for kernel in first.kernels:
        assert check_candidate(kernel.block, kernel.schedule, TARGETS[target]) == []
    alone = best(blocks_of(program, 64), TARGETS[target])[0].estimate_us
    assert first.estimate_us < 0.7 * alone


@pytest.mark.parametrize(
    "program",
    [gated_mlp(), rmsnorm_linear(), lora(), gemm_chain(), attention(16, 512, 512, 64)],
    ids=lambda program: program.name,
)
def test_a_full_grid_is_not(program: TensorProgram) -> None:
    """Measured on H200: rmsnorm_linear 15.3 us as one kernel, 17.1 split; gated_mlp 18.5 and 21.3."""
    blocks = blocks_of(program, 64)
    found = kernel_candidates(blocks, H200)
    assert found[0].then is None
    assert split_candidates(blocks, H200)  # they are looked at


def test_a_second_kernel_is_paid_for() -> None:
    for candidate in _splits(kernel_candidates(blocks_of(attention()), H200))[:8]:
        assert candidate.then is not None
        assert candidate.estimate_us > candidate.then.estimate_us > 1.5


def test_neighbours_step_in_either_kernel() -> None:
    start = split_candidates(blocks_of(attention()), H200)[0]
    found = neighbours(start, H200)
    assert start.then is not None
    assert all(other.then is not None for other in found)
    assert any(other.schedule != start.schedule and other.then == start.then for other in found)
    moved = [other for other in found if other.then is not None and other.then.schedule != start.then.schedule]
    assert any(other.schedule == start.schedule for other in moved)
    assert all(other.block is start.block for other in found)
    times = [other.estimate_us for other in found]
    assert times == sorted(times)


def test_one_topology_in_several_numbers_of_parts() -> None:
    cut = cuts_of(attention())[0]
    (a, then), (b, _) = cut.at(2), cut.at(4)
    schedule = split_candidates(blocks_of(attention()), H200)[0].schedule
    one = Candidate(a, schedule, 1.0, Candidate(then, schedule))
    assert one.topology == replace(one, block=b).topology
    assert one.topology != replace(one, then=None).topology


def test_each_topology_has_a_candidate_however_few_are_asked_for() -> None:
    """Those that are estimated to be the fastest may all lose digits (mugraph.verification.conditioning)."""
    blocks = blocks_of(gemm_chain(4, 1024, 1024, 128, 128))

    def alone(most: int) -> set[tuple[int, ...]]:
        return {found.topology for found in kernel_candidates(blocks, H200, most=most) if len(found.kernels) == 1}

    every = alone(1_000_000)
    assert len(every) > 2
    assert alone(2) == every


def test_chains_outside_loops_that_the_compiler_gets_wrong_are_not_offered() -> None:
    """Right sides under 64 columns on the wide path: what a swapped product of 8 queries has."""
    cut = next(cut for cut in cuts_of(attention(2, 8, 8192, 128), 64) if cut.axis == "n" and len(cut.parts) == 2)
    flat, looped = (cut.at(64, looped=looped)[0] for looped in (False, True))
    assert flat.loops == ()

    def swapped(block: BlockGraph, target: str) -> bool:
        found = [candidate.schedule for candidate in schedules(block, TARGETS[target])]
        return any(schedule.swap and dict(schedule.grid)["e"] >= 64 for schedule in found)

    assert not swapped(flat, "h200")
    assert swapped(flat, "a100")
    assert swapped(looped, "h200")
    # A product of sums that a loop made is not meant.
    assert any(candidate.schedule.swap for candidate in kernel_candidates(blocks_of(lora(), 64), H200))


MEASURED = [
    # H200, CUDA graphs, cold L2, 2026-11-21, Triton 3.6: program, parts, both schedules, microseconds
    (
        attention(32, 16, 4096, 64), "n", 4,
        Schedule((("b", 1), ("n_split", 1), ("e", 64), ("q", 16)), {"n_part": 256}, True, 4, 3),
        Schedule((("b", 2), ("q", 1), ("e", 32)), {}, False, 2, 2),
        13.5,
    ),
    (
        gated_mlp(), "h", 4,
        Schedule((("n", 64), ("h_split", 1), ("m", 16)), {"h_part": 64}, True, 4, 5),
        Schedule((("n", 16), ("m", 1)), {}, False, 4, 2),
        21.4,
    ),
    (
        rmsnorm_linear(), "h", 16,
        Schedule((("n", 128), ("h_split", 1), ("m", 16)), {"h_part": 64}, True, 8, 4),
        Schedule((("n", 16), ("m", 1)), {}, False, 4, 2),
        19.1,
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row[0].name)
def test_estimates_of_pairs_are_near_what_was_measured(
    row: tuple[TensorProgram, str, int, Schedule, Schedule, float],
) -> None:
    program, axis, count, one, two, us = row
    ratios: list[float] = []
    for cut in cuts_of(program, 64):
        first, second = cut.at(count)
        if cut.axis == axis and first.loop_axes == tuple(one.loops) and not second.loops:
            a = Candidate(first, one, estimate_us(first, one, H200))
            b = Candidate(second, two, estimate_us(second, two, H200))
            ratios.append(with_then(a, b).estimate_us / us)
    assert ratios
    assert 0.75 < min(ratios) < 1.33  # of the best of the topologies that these schedules are for

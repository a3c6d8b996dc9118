"""Variances in one pass over memory: every cut of a topology that holds a row is right, wrong ways to join its parts
are rejected, and what reads memory least is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block
from mugraph.search import Limits, topologies
from mugraph.search.direct import as_block
from mugraph.search.schedules.moments import MomentsCut, moments_cuts
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.targets import TARGETS
from mugraph.verification.conditioning import verified
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.row_programs import deviation, group_norm, offset_norm, softmax, uncentred
from tests.engine.verification.mutants import mutants, retyped

H100 = TARGETS["h100"]
PROGRAMS = (group_norm(4, 96), deviation(240), offset_norm(144))


def found_cuts(program: TensorProgram) -> list[MomentsCut]:
    """Of all topologies that the search finds."""
    blocks = [found.block for found in topologies(program, Limits(seconds=2.0, max_topologies=16))]
    return [cut for block in blocks for cut in moments_cuts(block)]


def judged(program: TensorProgram, first: BlockGraph, second: BlockGraph) -> Verdict:
    return verify_topologies(program, [(first, None), (second, None)], seed=1)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_cut_computes_the_program_and_keeps_its_digits(program: TensorProgram) -> None:
    found = found_cuts(program)
    assert found
    for cut in found:
        for kernels in cut.pairs(3 if cut.axis == "n" else 2):
            assert [violation for block in kernels for violation in check_block(block)] == []
            verdict = verified(program, kernels)
            assert verdict.passed, verdict.reason


def test_a_group_is_cut_along_its_channels_or_along_its_pixels() -> None:
    assert {cut.axis for cut in found_cuts(group_norm(32, 96))} == {"c", "n"}


def test_memory_is_read_once_for_the_statistics() -> None:
    """And once for what is normed; the kernel that does so reads the sums of parts, and holds no row."""
    program = group_norm(4, 96)
    for cut in moments_cuts(as_block(program)):
        ((first, second),) = cut.pairs(2)
        assert [op.tensor for op in first.ops if op.kind is Kind.LOAD].count("x") == 1
        assert [op.tensor for op in second.ops if op.kind is Kind.LOAD].count("x") == 1
        assert all(op.over == (cut.split,) for op in second.ops if op.over)


@pytest.mark.parametrize("program", PROGRAMS[:2], ids=lambda program: program.name)
def test_every_mutant_of_either_kernel_is_rejected(program: TensorProgram) -> None:
    cut = moments_cuts(as_block(program))[-1]
    ((first, second),) = cut.pairs(3)
    assert judged(program, first, second).passed
    of_first = [one for one in mutants(first) if one[1].ops != first.ops]
    of_second = [one for one in mutants(second) if one[1].ops != second.ops]
    for what, mutant in of_first:
        assert not judged(program, mutant, second).passed, what
    for what, mutant in of_second:
        assert not judged(program, first, mutant).passed, what
    assert len(of_first) + len(of_second) > 50


def named(block: BlockGraph, ending: str) -> Op:
    return next(op for op in block.ops if op.name.endswith(ending))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_other_ways_to_join_parts_are_rejected(program: TensorProgram) -> None:
    cut = moments_cuts(as_block(program))[-1]
    ((first, second),) = cut.pairs(3)
    elements, joined, parts = (named(second, ending) for ending in ("_elements", "_joined", "_between"))

    def with_op(op: Op) -> BlockGraph:
        ops = [op if one.name == op.name else one for one in second.ops]
        return replace(second, ops=retyped(ops, second))

    one_less = with_op(replace(elements, value=elements.value - 1.0))
    of_all = with_op(replace(elements, value=elements.value * 3))
    (squares,) = (name for name in joined.inputs if name.endswith("_parts"))
    one = Op("one", Kind.CONST, value=1.0)
    ops = [o for op in second.ops for o in ((one, replace(joined, kind=Kind.MUL, inputs=(squares, "one")))
                                            if op.name == joined.name else (op,))]  # fmt: skip
    no_delta = replace(second, ops=retyped(ops, second))
    (mean,) = (name for name in parts.inputs if name.endswith("_parts_mean"))
    of_parts = with_op(replace(parts, inputs=(mean, mean)))
    for mutant in (one_less, of_all, no_delta, of_parts):
        assert not judged(program, first, mutant).passed
    # The squares about a mean that is not the part's own.
    factor = named(first, "_share")
    whole = replace(first, ops=tuple(replace(op, value=op.value / 3) if op is factor else op for op in first.ops))
    assert not judged(program, whole, second).passed


def test_squares_about_something_else_are_not_cut() -> None:
    for program in (uncentred(240), softmax(240)):
        assert not moments_cuts(as_block(program))


@pytest.mark.parametrize("program", [group_norm(4, 64516), deviation(1 << 18)], ids=lambda program: program.name)
def test_a_long_row_is_cut_into_parts(program: TensorProgram) -> None:
    blocks = [as_block(program)]
    best = kernel_candidates(blocks, H100)[0]
    assert [len(kernel.block.loops) for kernel in best.kernels] == [0, 0]
    assert verified(program, [kernel.block for kernel in best.kernels]).passed


def test_a_row_whose_size_varies_is_not_cut() -> None:
    program = deviation(1 << 18)
    assert not kernel_candidates([as_block(program)], H100, varying=("n",))

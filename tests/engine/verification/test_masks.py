"""Masked graphs pass at sizes where the diagonal crosses tiles; a mask that is off by one anywhere does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search.schedules.splits import cuts
from mugraph.verification.verifier import verify_schedule, verify_topologies, verify_topology

from tests.engine.verification.masked_programs import OUT, SIZES, TENSORS, changed, looped, program, windowed

DIAGONALS = (0, 1, 256, 100)
"""Top left, one further, the last query sees the last key, and somewhere in between."""


@pytest.mark.parametrize("diagonal", DIAGONALS)
def test_a_causal_loop_is_right(diagonal: int) -> None:
    verdict = verify_topology(program(diagonal), looped(diagonal))
    assert verdict.passed, verdict.reason
    assert verdict.lax
    assert all(size > 2 for sizes in verdict.sizes for axis, size in sizes.items() if axis in "st")


@pytest.mark.parametrize("count", [2, 4])
def test_split_over_the_grid_it_is_right(count: int) -> None:
    for cut in cuts(looped(0)):
        first, second = cut.at(count)
        assert any(op.columns == ("t_split", "t_part") for op in first.ops)
        verdict = verify_topologies(program(0), [(first, None), (second, None)])
        assert verdict.passed, verdict.reason
        wrong = changed(first, "mask", value=1.0)
        assert not verify_topologies(program(0), [(wrong, None), (second, None)]).passed
        exchanged = changed(first, "mask", columns=("t_part", "t_split"))
        assert not verify_topologies(program(0), [(exchanged, None), (second, None)]).passed


@pytest.mark.parametrize("diagonal", DIAGONALS)
@pytest.mark.parametrize("off", [-1, 1])
def test_off_by_one_is_refuted(diagonal: int, off: int) -> None:
    verdict = verify_topology(program(diagonal), looped(diagonal + off))
    assert not verdict.passed
    by_tests = any(word in (verdict.reason or "") for word in ("differs", "divides by zero"))
    assert by_tests or diagonal in (100, 256), "near the first corner by random tests, elsewhere perhaps by its number"
    sizes = {"s": 6, "t": 9, "d": 2, "e": 2}
    small = (replace(program(diagonal % 4), sizes=sizes), replace(looped(diagonal % 4 + off), sizes=sizes))
    own, block = ((replace(g, tensors=tuple(sized(t, sizes) for t in g.tensors))) for g in small)
    own = replace(own, outputs={"y": sized(OUT, sizes)})
    schedule = Schedule((("s", 2),), {"t": 4})
    assert not verify_schedule(own, block, schedule).passed
    right = changed(block, "mask", value=float(diagonal % 4))
    assert verify_schedule(own, right, schedule).passed


def sized(tensor: Tensor, sizes: dict[str, int]) -> Tensor:
    return replace(tensor, strides=contiguous_strides(tensor.dims, sizes))


MUTANTS = {
    "no mask at all": {"part": ("p",), "acc_part": ("p", "v")},
    "a sum of everything": {"part": ("p",)},
    "values of later keys": {"acc_part": ("p", "v")},
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mask_left_out_is_refuted(name: str) -> None:
    block = looped(0)
    for op, inputs in MUTANTS[name].items():
        block = changed(block, op, inputs=inputs)
    assert not verify_topology(program(0), block).passed


def test_rows_and_columns_exchanged_are_refuted() -> None:
    wrong = changed(looped(0), "mask", rows=("t",), columns=("s",))
    assert not verify_topology(program(0), wrong).passed


def test_a_graph_whose_mask_has_a_row_too_few_divides_by_zero() -> None:
    verdict = verify_topology(program(0), looped(-1))
    assert not verdict.passed


@pytest.mark.parametrize("queries", [256, 16])
@pytest.mark.parametrize("width", [3, 64, 200, 255])
def test_a_sliding_window_is_cut_at_small_sizes_too(queries: int, width: int) -> None:
    """The last queries of 256 keys, each sees so many of them: the window's zeros are a corner that shrinks to nothing
    where nobody looks."""
    behind = 256 - queries
    window = Op("window", Kind.MASK, axes=("s", "t"), value=float(width - 1 - behind), rows=("t",), columns=("s",))
    sizes = {**SIZES, "s": queries, "t": 256}
    own, block = (replace(graph, sizes=sizes) for graph in (program(behind), looped(behind)))
    own, block = windowed(own, window), windowed(block, window)
    verdict = verify_topology(own, block, seed=1)
    assert verdict.passed, verdict.reason
    dropped = changed(block, "in_window", inputs=("p", "one"))
    dropped = replace(dropped, ops=(Op("one", Kind.CONST, value=1.0), *dropped.ops))
    assert "differs" in (verify_topology(own, dropped, seed=1).reason or "")


@pytest.mark.parametrize("diagonal", [0, 3, 100, 200])
def test_a_mask_is_all_but_its_complement(diagonal: int) -> None:
    """p * mask is p - p * the other triangle, whose rows and columns are exchanged."""
    other = Op("other", Kind.MASK, axes=("s", "t"), value=float(-diagonal - 1), rows=("t",), columns=("s",))
    block = looped(diagonal)
    at = next(number for number, op in enumerate(block.ops) if op.name == "kept")

    def with_other(mask: Op) -> BlockGraph:
        instead = (
            mask,
            Op("minus", Kind.CONST, value=-1.0),
            Op("above", Kind.MUL, ("p", "other"), ("s", "t")),
            Op("less", Kind.MUL, ("above", "minus"), ("s", "t")),
            Op("kept", Kind.ADD, ("p", "less"), ("s", "t")),
        )
        return replace(block, ops=(*block.ops[:at], *instead, *block.ops[at + 1 :]))

    verdict = verify_topology(program(diagonal), with_other(other), seed=1)
    assert verdict.passed, verdict.reason
    for off in (-1, 1):
        shifted = replace(other, value=other.value + off)
        assert not verify_topology(program(diagonal), with_other(shifted), seed=1).passed


@pytest.mark.parametrize("cut", [("s",), ("s", "e"), ("e",), ()])
@pytest.mark.parametrize("width", [2, 7, 100])
def test_a_square_window_without_loops_leaves_no_row_empty(cut: tuple[str, ...], width: int) -> None:
    """Whatever is cut into blocks, queries and keys are as many as leave something of each row."""
    window = Op("window", Kind.MASK, axes=("s", "t"), value=float(width - 1), rows=("t",), columns=("s",))
    own = windowed(program(0), window)
    assert isinstance(own, TensorProgram)
    own = replace(own, sizes={**SIZES, "t": 256})
    store = Op("store", Kind.STORE, ("y",), ("e", "s"), tensor="out")
    block = BlockGraph("whole", own.sizes, (*TENSORS, OUT), (*own.ops, store))
    verdict = verify_topology(own, block, seed=1, grid=cut)
    assert verdict.passed, verdict.reason

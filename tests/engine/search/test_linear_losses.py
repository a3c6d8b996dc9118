"""A loss over the classes of a linear layer at its real size: its logits, 262 MB, need not be stored."""

from __future__ import annotations

from functools import cache
from math import prod

import torch
import torch.nn.functional as F
from mugraph.ir.block import BlockGraph, Candidate, Loop, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram, worth_storing
from mugraph.search.kernel_graphs.waists import waists
from mugraph.search.run import Search
from mugraph.search.schedules.added_first import added_first
from mugraph.search.schedules.cost import usage
from mugraph.search.schedules.grid_order import in_grid_order
from mugraph.search.schedules.splits import Cut, cuts, odd_counts
from mugraph.search.schedules.tiles import Shape
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.units.search_units import single_units

from tests.engine.ops.harness import record
from tests.engine.units.regions import meta

ROWS, CLASSES, DEPTH = 4096, 32_000, 4096
TARGET = TARGETS["h200"]


@cache
def program(reduction: str) -> TensorProgram:
    inputs = {
        "x": meta(ROWS, DEPTH, dtype=torch.bfloat16),
        "w": meta(CLASSES, DEPTH, dtype=torch.bfloat16),
        "y": meta(ROWS, dtype=torch.int64),
    }
    region = record(lambda x, w, y: F.cross_entropy(F.linear(x, w), y, reduction=reduction), inputs)
    (unit,) = single_units(region)
    assert isinstance(unit, SearchUnit)
    return unit.program


@cache
def blocks(reduction: str) -> tuple[BlockGraph, ...]:
    search = Search(program(reduction), Limits(11, seconds=60.0, max_topologies=6))
    return tuple(found.block for found in search.run())


def split_by_classes() -> Cut:
    """Of the topology that walks the product's depth within a loop over the classes."""
    found = [cut for block in blocks("none") for cut in cuts(block) if len(block.loop_axes) == 2]
    return next(cut for cut in found if cut.block.sizes[cut.axis] == CLASSES)


def stored(candidate: Candidate) -> int:
    """Elements of the largest tensor that a kernel writes."""
    return max(prod(t.shape(k.block.sizes)) for k in candidate.kernels for t in k.block.outputs)


def test_parts_are_as_long_as_a_products_tile() -> None:
    cut = split_by_classes()
    assert {125, 250, 500} <= set(cut.counts(64))
    depth = next(c for block in blocks("none") for c in cuts(block) if c.axis != cut.axis)
    assert max(depth.counts(64)) == 64  # of what is added up there are never so many


def test_parts_of_a_vocabulary_that_no_power_of_two_divides() -> None:
    assert odd_counts(50_257) == [29]
    assert odd_counts(63) == []


def test_large_tiles_fit_as_the_compiler_finds_them() -> None:
    """Compiled for compute capability 9.0, the kernel of a tile of 128 by 256 needs 204 registers, and spills none."""
    first, _ = split_by_classes().at(125, looped=False)
    grid = (("n", 128), ("c_split", 1))
    used = usage(Shape(first), Schedule(grid, {"k": 64}, num_warps=8, num_stages=3), TARGET)
    assert 190 <= used.registers <= 224
    assert used.blocks == 1


def test_rows_vary_fastest_where_the_cache_holds_them_and_not_the_weights() -> None:
    shape = Shape(split_by_classes().at(250, looped=False)[0])
    assert [axis for axis, _ in in_grid_order(shape, [("c_split", 1), ("n", 128)])] == ["n", "c_split"]


def test_the_mean_is_taken_of_a_row_each() -> None:
    """The narrow value after the product is the row's loss, not what it is computed from."""
    whole = program("mean")
    found = waists(whole, worth_storing(whole, in_memory(whole)))
    first, last = next(parts for parts in found if whole.op(parts[0].values[0]).axes == ("n",))
    assert last.leaves == {*first.values}
    assert whole.op(first.values[0]).kind is Kind.KEPT
    assert waists(subprogram(whole, ["xw"], [], in_memory(whole)), {"xw"}) == []


def test_a_kernel_graph_of_the_mean_stores_no_logits() -> None:
    graphs = KernelGraphs(program("mean"), TARGET, GraphLimits.of(5, 11), blocks=blocks("mean"), seconds=60.0)
    for found in graphs.run():
        best = found.candidates[0]
        if not any(kernel.schedule.library for kernel in best.kernels) and stored(best) < ROWS * CLASSES // 100:
            first = best.kernels[0]
            assert prod(tile for axis, tile in first.schedule.grid if axis == "n") >= 128
            return
    raise AssertionError("each kernel graph stores the logits")


def test_sums_of_accumulated_tiles_are_split_too() -> None:
    """A mean over rows, each of which needs a pass over its classes."""
    whole = program("mean")
    rest = subprogram(whole, tuple(whole.outputs), ["xw"], in_memory(whole))
    nests = [found.block for found in Search(rest, Limits(11, seconds=60.0, max_topologies=6)).run()]
    nests = [block for block in nests if block.loops == (Loop("n", (Loop("c"),)),)]
    late = [b for b in nests if any(op.kind is Kind.ACCUM and {"n"} == {*op.over, *op.axes} for op in b.ops)]
    assert late
    for block in late:
        turned = added_first(block, "n")
        assert not any(op.kind is Kind.ACCUM and "n" in op.over and "n" in op.axes for op in turned.ops)
        assert "n" in {cut.axis for cut in cuts(block)}

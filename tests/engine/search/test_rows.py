"""Kernels of a row by a matrix have tiles of any size, not those of tensor cores, and are ranked as measured."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, estimate_us, schedules, topologies
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.rows import is_of_rows, reading_and_computing
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import TARGETS

from tests.engine.units.regions import cut, meta, units

H200 = TARGETS["h200"]
ROWS, DEPTH = 14336, 4096


def dequantised(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w.to(scale.dtype) * scale)


def program_of(rows: int) -> TensorProgram:
    half = torch.float16
    tensors = {
        "x": meta(rows, DEPTH, dtype=half),
        "w": meta(ROWS, DEPTH, dtype=torch.int8),
        "scale": meta(ROWS, 1, dtype=half),
    }
    (unit,) = units(cut(dequantised, **tensors))
    return unit.program


def blocks_of(program: TensorProgram) -> list[BlockGraph]:
    return [found.block for found in topologies(program, Limits(seconds=20.0, max_topologies=400))]


@pytest.fixture(scope="module")
def blocks() -> list[BlockGraph]:
    return blocks_of(program_of(1))


def test_what_a_kernel_of_rows_is(blocks: list[BlockGraph]) -> None:
    with_products = [block for block in blocks if any(op.kind.contracts for op in block.ops)]
    assert with_products
    assert all(is_of_rows(Shape(block)) for block in with_products)
    assert not any(is_of_rows(Shape(block)) for block in blocks_of(program_of(8)))


def test_a_block_may_have_few_columns_and_the_whole_depth(blocks: list[BlockGraph]) -> None:
    """On an H200 blocks of two and four columns, the depth whole or in halves, were the fastest of 165."""
    best = min((one for block in blocks for one in schedules(block, H200)), key=lambda one: one.estimate_us)
    ((_, columns),) = best.schedule.grid
    assert columns <= 8
    assert all(tile >= 1024 for tile in best.schedule.loops.values())
    around = {tile for one in neighbours(best, H200) for _, tile in one.schedule.grid}
    assert columns // 2 in around, "a walk goes on from there"


def test_tiles_have_the_elements_that_they_say(blocks: list[BlockGraph]) -> None:
    """A tensor core takes 16 columns at least. Nothing here goes to one."""
    shape = Shape(next(block for block in blocks if not block.loops))
    (axis,) = (axis for axis, size in shape.sizes.items() if size == ROWS)
    for columns in (1, 2, 4):
        tiles = shape.tiles(Schedule(((axis, columns),), {}))
        assert tiles[axis] == columns


MEASURED = ((2, 4096, 4, 18.15), (4, 4096, 8, 18.42), (4, 2048, 4, 18.95), (4, 1024, 2, 20.36), (8, 512, 2, 21.58),
            (32, 256, 4, 25.67))  # fmt: skip
"""Columns and depth of a tile, warps, and microseconds on an H200 (26 November 2026)."""


def test_the_estimate_ranks_tiles_as_they_were_measured(blocks: list[BlockGraph]) -> None:
    (columns, depth) = (next(a for a, n in blocks[0].sizes.items() if n == size) for size in (ROWS, DEPTH))
    whole = next(block for block in blocks if not block.loops and block.ops[3].kind.contracts)
    loop = next(b for b in blocks if b.loops and b.ops[3].kind.contracts and b.ops[4].inputs == (b.ops[3].name,))
    found: list[float] = []
    for wide, deep, warps, _ in MEASURED:
        block = whole if deep == DEPTH else loop
        schedule = Schedule(((columns, wide),), {} if deep == DEPTH else {depth: deep}, num_warps=warps, num_stages=2)
        found.append(estimate_us(block, schedule, H200))
    assert all(later > 0.99 * us for us, later in pairwise(found))
    assert all(0.8 < us / measured < 1.2 for us, (*_, measured) in zip(found, MEASURED, strict=True))


def test_a_scale_is_taken_out_of_the_sum(blocks: list[BlockGraph]) -> None:
    """Instructions count where they take a third as long as the bytes: a scale for each weight is one more."""
    whole = [block for block in blocks if not block.loops and is_of_rows(Shape(block))]
    best = min(whole, key=lambda block: min(one.estimate_us for one in schedules(block, H200)))
    by_name = {op.name: op for op in best.ops}
    (stored,) = (by_name[op.inputs[0]] for op in best.ops if op.tensor == best.outputs[0].name)
    assert not stored.over, "the last thing that is computed is the product with the scale"


@pytest.mark.parametrize(("reading", "computing", "measured"), [(9.0, 8.7, 17.1), (14.1, 5.1, 16.5), (27.7, 5.0, 26.5)])
def test_what_takes_as_long_is_not_hidden(reading: float, computing: float, measured: float) -> None:
    found = reading_and_computing(reading, computing)
    assert found == reading_and_computing(computing, reading)
    assert 0.92 < found / measured < 1.08
    assert found <= reading_and_computing(reading, computing + 1.0)

"""Loops of kernels without products load what their next iterations read, from three stages on."""

from __future__ import annotations

import re

import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import LOADS_AHEAD, BlockGraph, Candidate, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.factored import looped
from mugraph.search.schedules.cost import usage
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.sizes import schedules
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import TARGETS

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import check, randn

H200 = TARGETS["h200"]
DEPTH = 512


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.T


def block_of(rows: int) -> tuple[TensorProgram, BlockGraph]:
    program = check(linear, {"x": randn(rows, DEPTH), "w": randn(64, DEPTH)}).program
    (axis,) = (axis for axis, size in program.sizes.items() if size == DEPTH)
    block = looped(as_block(program), axis)
    assert block is not None
    return program, block


def lowered(rows: int, stages: int) -> tuple[TensorProgram, KernelSource]:
    program, block = block_of(rows)
    grid = tuple((axis, 16) for axis in block.outputs[0].axes)
    (loop,) = block.loop_axes
    schedule = Schedule(grid, {loop: 64}, num_stages=stages)
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_one_row(stages: int) -> None:
    program, source = lowered(1, stages)
    assert "tl.dot" not in source.jit
    loops = re.findall(r"for \w+ in (.*):", source.jit)
    (loop,) = loops
    assert loop.endswith(f", num_stages={stages})") is (stages >= LOADS_AHEAD)
    assert loop.startswith("tl.range(" if stages >= LOADS_AHEAD else "range(")
    assert passes((program, source))
    ptx = compile_for(source, 90).ptx
    assert ("cp.async" in ptx) is (stages >= LOADS_AHEAD)


def test_loads_of_products_are_ahead_by_the_stages_of_the_launch() -> None:
    program, source = lowered(16, 3)
    assert "tl.dot" in source.jit
    assert "tl.range" not in source.jit
    assert passes((program, source))
    assert "cp.async" in compile_for(source, 90).ptx


def test_a_kernel_is_proposed_without_and_tried_with_them() -> None:
    _, block = block_of(1)
    shape = Shape(block)
    found = schedules(block, H200)
    assert {one.schedule.num_stages for one in found} == {2}
    (loop,) = block.loop_axes
    plain = Schedule(((block.outputs[0].axes[-1], 16),), {loop: 64}, num_stages=2)
    steps = {one.schedule.num_stages for one in neighbours(Candidate(block, plain, 1.0), H200)}
    assert steps == {2, 3}
    shared = [usage(shape, Schedule(plain.grid, plain.loops, num_stages=stages), H200).shared for stages in (2, 3, 4)]
    assert shared[0] == 0
    assert shared[1] > 0
    assert shared[2] * 3 == shared[1] * 4

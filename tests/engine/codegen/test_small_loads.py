"""Scales, zero points and biases are loaded before the first sum, product or loop; what is large waits its turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.factored import blocks_of, looped
from mugraph.verification.float_test import FloatTester

from tests.engine.codegen.changed_text import passes
from tests.engine.units.regions import cut, meta, units

COLUMNS, DEPTH, GROUP = 32, 256, 32


def unpacked(w: torch.Tensor, groups: int) -> torch.Tensor:
    return torch.stack((w & 0xF, w >> 4), dim=-1).view(w.shape[0], groups, -1)


def with_zeros(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    codes = unpacked(w, scale.shape[1]).to(scale.dtype)
    return F.linear(x, ((codes - zero[:, :, None]) * scale[:, :, None]).flatten(1))


def with_bias(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x @ w.T + bias


def with_residual(x: torch.Tensor, w: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    return x @ w.T + residual


def program_of(function: Callable[..., torch.Tensor], shapes: Mapping[str, tuple[int, ...]]) -> TensorProgram:
    packed = function is with_zeros
    inputs = {
        name: meta(*shape, dtype=torch.uint8 if packed and name == "w" else torch.float16)
        for name, shape in shapes.items()
    }
    (unit,) = units(cut(function, **inputs))
    return unit.program


@cache
def dequantising() -> tuple[TensorProgram, KernelSource]:
    groups = DEPTH // GROUP
    shapes = {"x": (1, DEPTH), "w": (COLUMNS, DEPTH // 2), "scale": (COLUMNS, groups), "zero": (COLUMNS, groups)}
    program = program_of(with_zeros, shapes)
    block = blocks_of(program)[-1]
    block = next(one for one in blocks_of(program)[::-1] if not one.loops) if block.loops else block
    schedule = Schedule(((block.outputs[0].axes[-1], 4),), {})
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


@cache
def product(function: Callable[..., torch.Tensor], *last: int) -> tuple[TensorProgram, KernelSource]:
    """In a loop over its depth. last: the shape of what is added"""
    name = "bias" if function is with_bias else "residual"
    program = program_of(function, {"x": (64, DEPTH), "w": (COLUMNS, DEPTH), name: last})
    whole = as_block(program)
    axes = whole.outputs[0].axes
    (depth,) = (axis for axis in program.sizes if axis not in axes)
    block = looped(whole, depth)
    assert block is not None
    schedule = Schedule(tuple((axis, 32) for axis in axes), {depth: 64})
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


def test_scales_and_zero_points_are_loaded_before_sums() -> None:
    program, source = dequantising()
    first_sum = source.jit.index("tl.sum(")
    for name in ("scale", "zero", "w"):
        assert source.jit.index(f"{name} = tl.load(") < first_sum
    assert passes((program, source))
    with FloatTester() as tester:
        tested = tester.test_kernel(source, program, seed=1)
    assert tested.passed, tested.reason


def test_the_gpu_asks_for_them_before_its_threads_wait_for_each_other() -> None:
    ptx = compile_for(dequantising()[1], 90).ptx
    assert "bar.sync" in ptx
    assert "ld.global" not in ptx[ptx.index("bar.sync") :]


def test_a_bias_is_loaded_before_the_loop() -> None:
    program, source = product(with_bias, COLUMNS)
    assert source.jit.index("bias = tl.load(") < source.jit.index("for ") < source.jit.index("tl.dot(")
    assert passes((program, source))


def test_a_whole_tile_is_not_held_through_the_loop() -> None:
    program, source = product(with_residual, 64, COLUMNS)
    assert source.jit.index("tl.dot(") < source.jit.index("residual_ptr + ")
    assert passes((program, source))

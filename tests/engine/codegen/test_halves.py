"""`x[:, ::2]` and `x[:, 1::2]`, as weights of four bits are multiplied by, are read as one tile and taken apart."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.search.direct import as_block
from mugraph.search.factored import blocks_of, looped
from mugraph.search.schedules.sectors import run_bytes
from mugraph.search.schedules.tiles import Shape

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import check, randn


def low_first(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(packed.shape[0], scales.shape[1], -1)
    return x @ ((codes.to(x.dtype) - 8) * scales[:, :, None]).flatten(1).T


def high_first(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((packed >> 4, packed & 0xF), dim=-1).view(packed.shape[0], scales.shape[1], -1)
    return x @ ((codes.to(x.dtype) - 8) * scales[:, :, None]).flatten(1).T


def one_half(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (x[:, 1::2] * packed).sum(1) * scales.sum()


FUNCTIONS = {"low first": low_first, "high first": high_first}


def program_of(name: str, rows: int, groups: int = 4) -> TensorProgram:
    packed = torch.arange(16 * 64, dtype=torch.int32).to(torch.uint8).view(16, 64)
    return check(FUNCTIONS[name], {"x": randn(rows, 128), "packed": packed, "scales": randn(16, groups)}).program


@cache
def lowered(name: str, rows: int, loop: str, groups: int = 4) -> tuple[TensorProgram, KernelSource]:
    """loop: the axis that is looped over, if any, in tiles of half of it, or of one where products are of matrices"""
    program = program_of(name, rows, groups)
    block = blocks_of(program)[0]
    block = looped(block, loop) if loop else block
    assert block is not None
    grid = tuple((axis, min(8, program.sizes[axis])) for axis in block.outputs[0].axes)
    tiles = {loop: 1 if rows > 1 else program.sizes[loop] // 2} if loop else {}
    return program, lower_kernels([(block, Schedule(grid, tiles))], outputs=["out"], program=program)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_are_read_at_once(name: str, rows: int) -> None:
    program, source = lowered(name, rows, program_of(name, rows).tensor("x").axes[-2] if rows > 1 else "")
    assert [tensor.source for tensor in program.tensors if tensor.name.startswith("x")] == ["x", "x"]
    assert "x_2_ptr +" not in source.jit
    assert source.jit.count("tl.split(") == 1
    assert passes((program, source))
    assert ".target sm_90" in compile_for(source, 90).ptx


@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("which", ["groups", "within"])
def test_in_a_loop_each_iteration_reads_its_own(which: str, groups: int) -> None:
    program = program_of("low first", 1, groups)
    axes = program.tensor("x").axes
    program, source = lowered("low first", 1, axes[-1] if which == "within" else axes[-2], groups)
    assert "for " in source.jit
    assert "tl.split(" in source.jit
    assert passes((program, source))


def test_groups_that_fill_no_tile_are_masked() -> None:
    """Of three groups a tile has four."""
    packed = torch.arange(16 * 48, dtype=torch.int32).to(torch.uint8).view(16, 48)
    program = check(low_first, {"x": randn(1, 96), "packed": packed, "scales": randn(16, 3)}).program
    source = lower_kernels([(blocks_of(program)[0], Schedule((("n", 8),)))], outputs=["out"], program=program)
    assert "tl.split(" in source.jit
    assert passes((program, source))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x, x_2 = tl.split", "x_2, x = tl.split"),
        ("K * 2", "K"),
        ("tl.load(x_ptr +", "tl.load(x_ptr + 1 +"),
        ("tl.load(x_ptr +", "tl.load(x_ptr + 2 +"),
    ],
)
def test_what_reads_others_is_rejected(old: str, new: str) -> None:
    assert not passes(lowered("low first", 1, ""), old, new)


def test_one_half_alone_is_a_view() -> None:
    inputs = {"x": randn(4, 128), "packed": torch.ones(4, 64, dtype=torch.uint8), "scales": randn(2, 2)}
    program = check(one_half, inputs).program
    assert [tensor.windows for tensor in program.tensors] == [()] * 3
    assert "x[:, 1::2]" in [tensor.source for tensor in program.tensors]
    assert (
        "tl.split("
        not in lower_kernels(
            [(as_block(program), Schedule(((program.tensor("out").axes[0], 1),)))], outputs=["out"], program=program
        ).jit
    )


def test_halves_that_lie_elsewhere_are_views() -> None:
    """Columns of a transposed tensor do not lie beside one another."""

    def turned(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        return low_first(x.T, packed, scales)

    packed = torch.ones(16, 64, dtype=torch.uint8)
    program = check(turned, {"x": randn(128, 4), "packed": packed, "scales": randn(16, 4)}).program
    assert not any(tensor.windows for tensor in program.tensors)


def test_the_text_of_a_program_says_which_places_are_left_out() -> None:
    program = program_of("low first", 1)
    assert "pad -1" in format_program(program)
    assert parse_program(format_program(program)) == program


def test_each_half_costs_its_own_bytes_in_whole_sectors() -> None:
    def gated(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x[:, ::2]) * x[:, 1::2]

    program = check(gated, {"x": randn(64, 256).half()}).program
    shape = Shape(as_block(program))
    reads = [one for one in shape.accesses if not one.is_store]
    assert [(one.whole, one.again, one.is_scattered) for one in reads] == [(64 * 128 * 2, False, False)] * 2
    (axes,) = {one.innermost for one in reads}
    assert run_bytes(axes, 2, {"m": 1, "n": 8}, program.sizes) == 8 * 2

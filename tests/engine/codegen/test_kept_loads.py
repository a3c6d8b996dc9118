"""Parts that are joined along an axis of the grid: a block loads the part it is in, and no other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.tile.kinds import KEEP
from mugraph.codegen.tile.masks import with_keeps
from mugraph.codegen.tile.nodes import Node
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.work import work

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import check, randn

ROOT = Path(__file__).resolve().parents[3]
C, N = 8, 64
_OF_THE_BLOCK = re.compile(r"mask=\((\d+ <= )?pid_")


def biased(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.cat((x, y), dim=1) + b[:, None])


def divided(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where x is not loaded it is 0, and is divided by."""
    return torch.cat((b[None, : x.shape[1], None] / x, y.exp(), x), dim=1)


def summed(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """y counts in its own part, and in every row's last sum: it is loaded everywhere."""
    return torch.cat((x, y), dim=1) * y.sum(1, keepdim=True) + b[:, None]


def normed(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    root = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    return torch.cat((x * root * y[0, 0], y), dim=1)


FUNCTIONS = {"biased": biased, "divided": divided, "summed": summed, "normed": normed}


@cache
def lowered(name: str, tile: int = 1, n: int = N) -> tuple[TensorProgram, KernelSource, Shape, Schedule]:
    """tile: parts that a block has"""
    inputs = {"x": randn(3, 2 * C, n), "y": randn(3, C, n), "b": randn(3 * C)}
    program = check(FUNCTIONS[name], inputs).program
    block = as_block(program)
    parts = {axis for op in block.ops for axis in (*op.rows, *op.columns)}
    grid = tuple((a, tile if a in parts else 1) for a in block.outputs[0].axes if a in parts or block.sizes[a] == 3)
    schedule = Schedule(grid)
    source = lower_kernels([(block, schedule)], outputs=["out"], program=program)
    return program, source, Shape(block), schedule


def loads_of(source: KernelSource, tensor: str) -> list[str]:
    """The text of the loads of a tensor and its parts, each in one line."""
    text = " ".join(source.jit.split())
    return [one.split(" = ")[0] for one in text.split("tl.load(")[1:] if one.strip().startswith(tensor)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_is_right_and_compiles(name: str) -> None:
    program, source, *_ = lowered(name)
    assert passes((program, source))
    assert ".target sm_90" in compile_for(source, 90).ptx


def test_each_part_is_loaded_in_its_own_blocks() -> None:
    _, source, *_ = lowered("biased")
    loads = [load for tensor in ("x", "y", "b") for load in loads_of(source, tensor)]
    assert len(loads) == 6
    assert [load for load in loads if not _OF_THE_BLOCK.search(load)] == []


def test_what_counts_elsewhere_is_loaded_everywhere() -> None:
    _, source, *_ = lowered("summed")
    assert all("mask=" in load for load in loads_of(source, "x"))
    assert any("mask=" not in load for load in loads_of(source, "y"))


def test_a_block_of_several_parts_loads_them() -> None:
    program, source, *_ = lowered("biased", 4)
    assert passes((program, source))
    assert not any(_OF_THE_BLOCK.search(load) for tensor in ("x", "y") for load in loads_of(source, tensor))


@pytest.mark.parametrize(
    "changed", [("pid_k <= 0", "pid_k <= 1"), ("pid_k <= 0", "pid_k < 0"), ("2 <= pid_k", "3 <= pid_k")]
)
def test_a_wrong_condition_is_rejected(changed: tuple[str, str]) -> None:
    program, source, *_ = lowered("biased")
    assert changed[0] in source.jit
    assert not passes((program, source), *changed)


@pytest.mark.parametrize(("name", "read"), [("biased", 3), ("summed", 5)])
def test_bytes_that_are_not_loaded_are_not_counted(name: str, read: int) -> None:
    """In parts of x and y, whose rows are too long to stay in a cache: those of `summed` load y three times."""
    *_, shape, schedule = lowered(name, n=4096)
    found = work(shape, schedule, schedule.blocks(shape.sizes))
    part = 3 * C * 4096 * 4
    biases = 3 * 3 * C * 4
    assert read * part + 3 * part < found.moved <= read * part + 3 * part + 3 * biases


def test_in_its_own_blocks_a_part_has_its_own_numbers(tmp_path: Path) -> None:
    given = {"x": randn(3, 2 * C, N), "y": randn(3, C, N), "b": randn(3 * C)}
    given["x"][1, 3] = torch.nan
    for name in FUNCTIONS:
        source = lowered(name)[1]
        (tmp_path / f"{name}.py").write_text(source.standalone())
        arguments = [eval(tensor.source, {}, given) for tensor in source.inputs]
        torch.save((f"launch_{source.name}", arguments), tmp_path / f"{name}.pt")
    command = [sys.executable, "-W", "ignore", "-m", "tests.engine.codegen.padded_child", str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "TRITON_INTERPRET": "1"}, cwd=ROOT, timeout=120)
    for name, function in FUNCTIONS.items():
        torch.testing.assert_close(torch.load(tmp_path / f"{name}.out"), function(**given), equal_nan=True)


def test_a_product_with_a_part_is_kept_as_a_whole() -> None:
    """Or a NaN of the other factor, as the root of a row, would be seen in the other parts."""
    row, part = frozenset({"n"}), frozenset({"k"})
    given = [Node(name, Kind.LOAD, axes=row, tensor=name) for name in ("a", "root")]
    mask = Node("mask", Kind.MASK, axes=part, columns=("k",))
    first = Node("first", Kind.MUL, ("mask", "a"), row | part)
    nodes = with_keeps(
        {one.name: one for one in (*given, mask, first, Node("out", Kind.MUL, ("first", "root"), row | part))}
    )
    assert (nodes["out"].kind, nodes["out"].inputs[1]) == (KEEP, "mask")
    whole = nodes[nodes["out"].inputs[0]]
    assert (whole.kind, set(whole.inputs), whole.axes) == (Kind.MUL, {"a", "root"}, row)


def test_a_mask_of_the_row_stays_where_it_is() -> None:
    """As a causal one, which is known by what it hides of the exponentials."""
    row = frozenset({"n"})
    given = [Node(name, Kind.LOAD, axes=row, tensor=name) for name in ("a", "b")]
    mask = Node("mask", Kind.MASK, axes=row, columns=("n",))
    first = Node("first", Kind.MUL, ("mask", "a"), row)
    nodes = with_keeps({one.name: one for one in (*given, mask, first, Node("out", Kind.MUL, ("first", "b"), row))})
    assert nodes["out"].kind is Kind.MUL

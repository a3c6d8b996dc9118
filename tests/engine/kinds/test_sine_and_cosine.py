"""Sine and cosine: from PyTorch's spellings to kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mugraph.codegen.lower import lower as kernel_of
from mugraph.events import Done
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ops.algebra.primitives import Primitives
from mugraph.pipeline import Options, run
from mugraph.search import Limits, Search
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record

SPELLINGS = """\
import torch


# mugraph: x=f32[16, 32], angles=f32[16, 32]
def function(x, angles):
    return (x * torch.cos(angles) - x * torch.sin(angles)).sum(-1)


# mugraph: x=f32[16, 32], angles=f32[16, 32]
def method(x, angles):
    return (x * angles.cos() - x * angles.sin()).sum(-1)


# mugraph: x=f32[16, 32], angles=f32[16, 32]
def in_place(x, angles):
    cos, sin = angles + 0.0, angles + 0.0
    return (x * cos.cos_() - x * sin.sin_()).sum(-1)


# mugraph: x=f16[16, 32], angles=f32[16, 16], w=f16[32, 16]
def rotary(x, angles, w):
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).half() @ w
"""


def test_functions_that_call_them_get_kernels_that_are_right(tmp_path: Path) -> None:
    path = tmp_path / "angles.py"
    path.write_text(SPELLINGS)
    (done,) = (
        event for event in run(path, options=Options(budget_s=2, compare_with="code")) if isinstance(event, Done)
    )
    assert done.result.errors == ()
    texts: dict[str, str] = {}
    for region in done.result.regions:
        assert region.status == "improved", (region.region.function, region.reason)
        texts[region.region.function] = "".join(source.jit for source in region.sources.values())
    assert texts.keys() == {"function", "method", "in_place", "rotary"}
    assert all("tl.cos(" in text and "tl.sin(" in text for text in texts.values())


def turned(x: torch.Tensor, y: torch.Tensor, angles: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * torch.cos(angles) + y * torch.sin(angles)) @ w


@pytest.fixture(scope="module")
def program() -> TensorProgram:
    x = torch.ones(16, 64)
    return lower_region(record(turned, {"x": x, "y": x.clone(), "angles": x.clone(), "w": torch.ones(64, 32)})).program


@pytest.fixture(scope="module")
def block(program: TensorProgram) -> BlockGraph:
    """One of the graphs that the search finds, with a loop."""
    found = [found.block for found in Search(program, Limits(max_block_ops=6)).run()]
    assert found
    for one in found:
        assert verify_topology(program, one, seed=0).passed
    return min((one for one in found if one.loops), key=lambda one: len(one.ops))


@pytest.mark.parametrize(
    "wrong",
    [{Kind.SIN: Kind.COS}, {Kind.COS: Kind.SIN}, {Kind.SIN: Kind.COS, Kind.COS: Kind.SIN}, {Kind.COS: Kind.EXP}],
)
def test_one_for_the_other_is_rejected(program: TensorProgram, block: BlockGraph, wrong: dict[Kind, Kind]) -> None:
    ops = tuple(replace(op, kind=wrong.get(op.kind, op.kind)) for op in block.ops)
    assert not verify_topology(program, replace(block, ops=ops), seed=0).passed


def test_it_says_what_was_taken_as_random(program: TensorProgram, block: BlockGraph) -> None:
    verdict = verify_topology(program, block, seed=0)
    assert "cos is outside the Lax fragment" in (verdict.bound_note or "")


def test_the_kernel_calls_tritons(block: BlockGraph) -> None:
    rows, columns = block.outputs[0].axes
    text = kernel_of(block, Schedule(((rows, 16), (columns, 16)), dict.fromkeys(block.loop_axes, 16))).jit
    assert "tl.cos(angles)" in text
    assert "tl.sin(angles)" in text


def test_of_a_number_it_is_a_number() -> None:
    algebra = Primitives()
    cosine = algebra.opaque(Kind.COS, algebra.const(0.0))
    assert (cosine.kind, cosine.value) == (Kind.CONST, 1.0)

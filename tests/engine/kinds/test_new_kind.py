"""A new kind is one file: one that is declared here goes from a call to a kernel, and no pass knows it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from mugraph.codegen.lower import lower as kernel_of
from mugraph.ir.block import Schedule
from mugraph.ir.drawing.words import expression, symbol
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block, check_program
from mugraph.ir.text.parser import parse_block, parse_program
from mugraph.ir.text.printer import format_block, format_program
from mugraph.kinds import Role, kind, kind_named
from mugraph.ops.algebra.builder import Entry
from mugraph.ops.algebra.registry import entries
from mugraph.search import Limits, Search
from mugraph.verify import torch_reference
from mugraph.verify.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record


@pytest.fixture
def hypot() -> Iterator[Kind]:
    """The length of (x, y), as one operator."""
    yield Kind(
        "hypot",
        Role.ELEMENTWISE,
        2,
        meaning=lambda on, of, fn, over: on.sqrt(on.add(on.mul(of[0], of[0]), on.mul(of[1], of[1]))),
        commutes=True,
        shown="hypot({0}, {1})",
        symbol="hypot",
        stem="length",
        triton="tl.sqrt({0:atom} * {0:atom} + {1:atom} * {1:atom})",
    )
    del kind._KINDS["hypot"]
    del Kind.HYPOT


@pytest.fixture
def program(hypot: Kind, monkeypatch: pytest.MonkeyPatch) -> TensorProgram:
    """What a function that calls torch.hypot is lowered to, by a rule for it."""
    rule = Entry(
        lambda b, args, dims: b.make(hypot, b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("other"), dims)),
        ("input", "other"),
    )
    monkeypatch.setitem(entries(), "torch.hypot", rule)
    x, y = torch.ones(16, 64), torch.ones(16, 64)
    lowered = lower_region(record(lambda x, y, w: torch.hypot(x, y) @ w, {"x": x, "y": y, "w": torch.ones(64, 32)}))
    return lowered.program


def test_it_is_written_and_read(hypot: Kind, program: TensorProgram) -> None:
    (op,) = (op for op in program.ops if op.kind is hypot)
    assert check_program(program) == []
    assert parse_program(format_program(program)) == program
    assert program_from_json(program_to_json(program)) == program
    assert pickle.loads(pickle.dumps(program)) == program
    assert kind_named("hypot") is hypot is Kind.HYPOT
    assert (expression(op, {}), symbol(op, {})) == ("hypot(x, y)", "hypot")


def test_it_is_searched_verified_and_generated(hypot: Kind, program: TensorProgram) -> None:
    blocks = [found.block for found in Search(program, Limits(max_block_ops=4)).run()]
    assert any(block.loops for block in blocks)
    for block in blocks:
        assert check_block(block) == []
        assert parse_block(format_block(block)) == block
        assert any(op.kind is hypot for op in block.ops)
        assert verify_topology(program, block, seed=0).passed
        wrong = tuple(replace(op, kind=Kind.ADD) if op.kind is hypot else op for op in block.ops)
        assert not verify_topology(program, replace(block, ops=wrong), seed=0).passed
    block = min((block for block in blocks if block.loops), key=lambda block: len(block.ops))
    rows, columns = block.outputs[0].axes
    source = kernel_of(block, Schedule(((rows, 16), (columns, 16)), dict.fromkeys(block.loop_axes, 16)))
    assert "tl.sqrt(x * x + y * y)" in source.jit


def test_its_reference_is_pytorchs(hypot: Kind, program: TensorProgram) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=generator) for shape in ((16, 64), (16, 64), (64, 32)))
    ((name, tensor),) = program.outputs.items()
    found = torch_reference.evaluate(program, {"x": x, "y": y, "w": w})[name]
    assert found.axes == tensor.axes
    torch.testing.assert_close(found.data.float(), torch.hypot(x, y) @ w, rtol=1e-4, atol=1e-4)

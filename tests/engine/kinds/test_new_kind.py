"""A new kind is one file: one that is declared here goes from a call to a kernel, and no pass knows it.

hypot is made of primitives that exist. Of fmax and copysign, as they are declared here, nothing is known: they are
opaque.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from mugraph.codegen.lower import lower as kernel_of
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.drawing.words import expression, symbol
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.lax import why_not_lax
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block, check_program
from mugraph.ir.text.parser import parse_block, parse_program
from mugraph.ir.text.printer import format_block, format_program
from mugraph.kinds import Opaque, Role, kind, kind_named
from mugraph.ops.algebra.builder import Entry
from mugraph.ops.algebra.registry import entries
from mugraph.ops.families.elementwise import opaque
from mugraph.search import Limits, Search
from mugraph.verification import torch_reference
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record


def hypot() -> Kind:
    """The length of (x, y), as one operator."""
    return Kind(
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


def fmax() -> Kind:
    """The larger, taken as a function of which it is only known that the order of its arguments does not matter."""
    return Kind(
        "fmax",
        Role.ELEMENTWISE,
        2,
        opaque=Opaque(np.fmax, ("fmax",)),
        commutes=True,
        shown="fmax({0}, {1})",
        symbol="fmax",
        triton="tl.maximum({0}, {1})",
    )


def copysign() -> Kind:
    return Kind(
        "copysign",
        Role.ELEMENTWISE,
        2,
        opaque=Opaque(np.copysign, ("copysign",)),
        shown="copysign({0}, {1})",
        symbol="copysign",
        triton="tl.where({1:product} < 0.0, -tl.abs({0}), tl.abs({0}))",
    )


@dataclass(frozen=True)
class New:
    kind: Kind
    program: TensorProgram
    call: Callable[..., torch.Tensor]


TEXTS = {
    "hypot": "tl.sqrt(x * x + y * y)",
    "fmax": "tl.maximum(x, y)",
    "copysign": "tl.where(y < 0.0, -tl.abs(x), tl.abs(x))",
}


@pytest.fixture(params=[hypot, fmax, copysign], ids=lambda made: made.__name__)
def new(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[New]:
    """The kind, and what a function that calls it is lowered to."""
    made: Kind = request.param()
    call: Callable[..., torch.Tensor] = getattr(torch, made.name)
    rule = (
        opaque(made)
        if made.opaque
        else lambda b, args, dims: b.make(
            made, b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("other"), dims)
        )
    )
    monkeypatch.setitem(entries(), f"torch.{made.name}", Entry(rule, ("input", "other")))
    x, y = torch.ones(16, 64), torch.ones(16, 64)
    region = record(lambda x, y, w: call(x, y) @ w, {"x": x, "y": y, "w": torch.ones(64, 32)})
    yield New(made, lower_region(region).program, call)
    del kind._KINDS[made.name]
    delattr(Kind, made.name.upper())


def test_it_is_written_and_read(new: New) -> None:
    program = new.program
    (op,) = (op for op in program.ops if op.kind is new.kind)
    assert check_program(program) == []
    assert parse_program(format_program(program)) == program
    assert program_from_json(program_to_json(program)) == program
    assert pickle.loads(pickle.dumps(program)) == program
    assert kind_named(new.kind.name) is new.kind is getattr(Kind, new.kind.name.upper())
    assert (expression(op, {}), symbol(op, {})) == (f"{new.kind.name}(x, y)", new.kind.name)
    assert (why_not_lax(program.ops) is None) is (new.kind.opaque is None)


def swapped(block: BlockGraph, of: Kind) -> BlockGraph:
    return replace(block, ops=tuple(replace(op, inputs=op.inputs[::-1]) if op.kind is of else op for op in block.ops))


def test_it_is_searched_verified_and_generated(new: New) -> None:
    program = new.program
    blocks = [found.block for found in Search(program, Limits(max_block_ops=4)).run()]
    assert any(block.loops for block in blocks)
    for block in blocks:
        assert check_block(block) == []
        assert parse_block(format_block(block)) == block
        assert any(op.kind is new.kind for op in block.ops)
        assert verify_topology(program, block, seed=0).passed
        wrong = tuple(replace(op, kind=Kind.ADD) if op.kind is new.kind else op for op in block.ops)
        assert not verify_topology(program, replace(block, ops=wrong), seed=0).passed
        assert verify_topology(program, swapped(block, new.kind), seed=0).passed is new.kind.commutes
    block = min((block for block in blocks if block.loops), key=lambda block: len(block.ops))
    rows, columns = block.outputs[0].axes
    source = kernel_of(block, Schedule(((rows, 16), (columns, 16)), dict.fromkeys(block.loop_axes, 16)))
    assert TEXTS[new.kind.name] in source.jit


def test_its_reference_is_pytorchs(new: New) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=generator) for shape in ((16, 64), (16, 64), (64, 32)))
    ((name, tensor),) = new.program.outputs.items()
    found = torch_reference.evaluate(new.program, {"x": x, "y": y, "w": w})[name]
    assert found.axes == tensor.axes
    torch.testing.assert_close(found.data.float(), new.call(x, y) @ w, rtol=1e-4, atol=1e-4)

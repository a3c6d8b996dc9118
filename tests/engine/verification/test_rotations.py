"""Rotated products, as traced and searched, pass; with the wrong half, sign or table they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.run import topologies
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, randn, record


def halves(x: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def lowered(turn: Callable[[torch.Tensor], torch.Tensor]) -> TensorProgram:
    def scores(q: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return (q * c + turn(q) * s) @ (k * c + turn(k) * s).T

    inputs = {"q": randn(40, 16), "k": randn(40, 16), "c": randn(40, 16), "s": randn(40, 16)}
    return lower_region(record(scores, inputs)).program


def wrong(block: BlockGraph, program: TensorProgram) -> Iterator[tuple[str, BlockGraph]]:
    """One load reads the other half, or another tensor; halves exchanged everywhere; a sign lost or doubled."""
    loads = [op for op in block.ops if op.kind is Kind.LOAD]
    axes = {tensor.name: tensor.axes for tensor in program.tensors}
    for one in loads:
        for other in loads:
            if one.tensor != other.tensor and axes[one.tensor] == axes[other.tensor]:
                yield f"{one.name} reads {other.tensor}", exchanged(block, {one.name: other.tensor})
    for one, other in combinations(loads, 2):
        if axes[one.tensor] == axes[other.tensor] and one.tensor[0] == other.tensor[0]:
            both = {one.name: other.tensor, other.name: one.tensor}
            yield f"the halves of {one.tensor[0]} are exchanged", exchanged(block, both)
    for op in block.ops:
        if op.kind is Kind.CONST:
            for value in (1.0, 2 * op.value):
                ops = tuple(replace(op, value=value) if other is op else other for other in block.ops)
                yield f"{op.name} is {value}", replace(block, ops=ops)


def exchanged(block: BlockGraph, tensors: dict[str, str]) -> BlockGraph:
    return replace(block, ops=tuple(replace(op, tensor=tensors.get(op.name, op.tensor)) for op in block.ops))


@pytest.mark.parametrize("turn", [halves, neighbours])
def test_wrong_rotations_are_refused(turn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    program = lowered(turn)
    block = next(iter(topologies(program))).block
    assert verify_topology(program, block, seed=1).passed
    refused = 0
    for what, mutant in wrong(block, program):
        verdict = verify_topology(program, mutant, seed=1)
        assert not verdict.passed, what
        refused += 1
    assert refused >= 20

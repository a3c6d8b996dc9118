"""`mugraph verify --ugraph`: a graph with exp, a sum and a quotient against code that says torch.sigmoid, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.json import mugraph_to_json
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind

from tests.engine.verification.graphs import tensor
from tests.engine.verification.through_exp import SIZES, Writer, X, Y, logistic

MODULE = """\
import torch


# mugraph: x=f16[8, 16], y=f16[8, 16]
def gate(x, y):
    return ({}).sum(-1)
"""
SUM = tensor("z", "row", SIZES)
BY_NAME = "torch.sigmoid(x - y)"
BY_HAND = "torch.exp(x) / (torch.exp(x) + torch.exp(y))"
ANOTHER = "torch.sigmoid(x + y)"


def difference(w: Writer) -> str:
    return w.add(w.x, w.mul(-1.0, w.y))


def through_exp(w: Writer) -> str:
    return logistic(w, difference(w))


def by_name(w: Writer) -> str:
    return w.sigmoid(difference(w))


@pytest.mark.parametrize(
    ("code", "write", "equal"),
    [(BY_NAME, through_exp, True), (BY_HAND, by_name, True), (ANOTHER, through_exp, False)],
)
def test_verify(code: str, write, equal: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    writer, tensors = Writer(), (X, Y, SUM)
    writer.store(writer.reduce("total", Kind.SUM, write(writer), over="column"), SUM)
    block = BlockGraph("gate", SIZES, tensors, tuple(writer.ops), ())
    kernel = GraphKernel("gate", block, Schedule((("row", 4),)))
    document = mugraph_to_json(MuGraph("gate", SIZES, tensors, ("x", "y"), ("z",), (kernel,)))
    graph = tmp_path / "gate.json"
    graph.write_text(json.dumps(document))
    model = tmp_path / "model.py"
    model.write_text(MODULE.format(code))
    assert run(["verify", "--ugraph", str(graph), f"{model}:gate", "--json"]) == (0 if equal else 1)
    (found,) = json.loads(capfd.readouterr().out)["graphs"]
    assert found["passed"] is equal, found["reason"]
    assert found["lax"]

"""Of a program of gigabytes a few pieces are compared with float64, and the others with eager PyTorch."""

from __future__ import annotations

import base64
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.verification import float_inputs, scenario_run
from mugraph.verification.near import Near
from mugraph.verification.pieces import pieces
from mugraph.verification.scenario_run import ScenarioResult, ScenarioRun

from tests.engine.verification.in_child import every_scenario
from tests.engine.verification.launchers import FAMILIES

RIGHT = """
import torch

def launch(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
"""
ONE_WRONG_ELEMENT = RIGHT.replace("    return e /", "    e[ROW, 3] *= 1.5\n    return e /")
NOT_WRITTEN = """
def cleared(y):
    y[ROW] = 0
    return y
""" + RIGHT.replace("return e / e.sum(-1, keepdim=True)", "return cleared(e / e.sum(-1, keepdim=True))")


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """First rows of the pieces that are compared with float64."""
    first: list[int] = []
    small = partial(pieces, large=200)
    original = ScenarioRun._judged  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, piece: Any, *rest: Any) -> Any:
        first.append(piece.first)
        return original(self, piece, *rest)

    monkeypatch.setattr(scenario_run, "PIECE", 200)
    monkeypatch.setattr(float_inputs, "pieces", small)
    monkeypatch.setattr(ScenarioRun, "_judged", noted)  # pyright: ignore[reportPrivateUsage]
    return first


def run(text: str, folder: Path) -> list[ScenarioResult]:
    program = FAMILIES["softmax f32"].program()
    request = {
        "number": 1,
        "module": text,
        "launcher": "launch",
        "program": base64.b64encode(pickle.dumps(program)).decode(),
        "inputs": [tensor.name for tensor in program.tensors],
        "outputs": [tensor.name for tensor in program.outputs.values()],
        "seed": 0,
        "shapes": {},
    }
    return every_scenario(request, folder)


def test_a_right_one_is_compared_in_a_few_pieces(judged: list[int], tmp_path: Path) -> None:
    results = run(RIGHT, tmp_path)
    assert all(one.passed for one in results), results
    program = FAMILIES["softmax f32"].program()
    assert len(list(pieces(program, 200))) > 6
    scenarios = [one for one in results if one.scenario not in ("NaN", "infinite")]
    assert len(judged) == 3 * len(scenarios)


@pytest.mark.parametrize("text", [ONE_WRONG_ELEMENT, NOT_WRITTEN])
def test_a_fault_anywhere_shows(judged: list[int], tmp_path: Path, text: str) -> None:
    program = FAMILIES["softmax f32"].program()
    rows = program.tensors[0].shape(program.sizes)[0]
    for row in range(0, rows, 3):
        results = run(text.replace("ROW", str(row)), tmp_path)
        assert not results[-1].passed, row


def test_near_is_as_near_as_what_was_compared() -> None:
    eager = torch.linspace(-2.0, 2.0, 1001)
    near = Near()
    near.add(eager + 1e-6 * torch.sign(torch.sin(100 * eager)), eager)
    assert near.has(eager + 2e-6, eager)
    assert not near.has(eager + 1e-4, eager)
    hole = eager.clone()
    hole[500] = float("nan")
    assert not near.has(hole, eager)
    assert near.has(hole, hole)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_is_near_where_no_float8_can_be_compared(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where isfinite of it is not implemented."""
    usual = torch.isfinite

    def of_more_bits(tensor: torch.Tensor) -> torch.Tensor:
        assert tensor.dtype.itemsize > 1
        return usual(tensor)

    monkeypatch.setattr(torch, "isfinite", of_more_bits)
    eager = torch.linspace(-30.0, 30.0, 64).to(dtype)
    near = Near()
    near.add(eager, eager)
    assert near.has(eager, eager)
    assert not near.has((eager.float() * 8).to(dtype), eager)

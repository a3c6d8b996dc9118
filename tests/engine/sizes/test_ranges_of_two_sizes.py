"""Ranges of 1 and 2: at 1 an axis vanishes, and yet the kernel is for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.sizes.solving import Found, run_beside, solved

CODE = """\
import torch


# mugraph: b=1..2, x=f32[b, 64], w=f32[64, 32]
def product(x, w):
    return torch.tanh(x) @ w


# mugraph: b=1..2, n=1..15, x=f32[n, b, 64], w=f32[n, 64]
def scaled(x, w):
    return torch.tanh(x * w[:, None]) + 1.0


# mugraph: b=1..2, t=1..2, q=f32[b, t, 32], k=f32[b, t, 32]
def scores(q, k):
    return torch.softmax(q @ k.mT, dim=-1)


# mugraph: b=1..2, x=f32[3 * b, 64]
def multiples(x):
    return torch.softmax(x, dim=-1) * 2.0
"""
SHAPES = {
    "product": "x=(b, 64), w=(64, 32)",
    "scaled": "x=(t, b, 64), w=(t, 64)",
    "scores": "q=(b, t, 32), k=(b, t, 32)",
    "multiples": "x=(3 * b, 64)",
}


@pytest.fixture(scope="module")
def found(path: Path) -> Found:
    return solved(path, SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_they_are_right_at_both(found: Found, path: Path, name: str) -> None:
    assert found[name][0].least
    run_beside(path, name, found, SHAPES[name], "[(1, 1), (1, 2), (2, 1), (2, 2)]", "b, t")

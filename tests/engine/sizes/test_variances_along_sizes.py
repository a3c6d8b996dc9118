"""Variances along a size: a kernel for the sizes at which PyTorch divides by more than zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.trace.tracer import trace_file

from tests.engine.sizes.solving import Found, run_beside, solved

CODE = """\
import torch


# mugraph: b=1..96, x=f32[b, 64]
def standard(x):
    return (x - x.mean(0)) / torch.sqrt(x.var(0) + 1e-5)


# mugraph: t=1..50, x=f32[3, t, 32]
def by_three(x):
    return torch.var(x, dim=1, correction=2) + 1.0


# mugraph: b=1..96, x=f32[b, 64]
def of_both(x):
    return torch.tanh(x) * x.std(dim=(0, 1))


# mugraph: b=1..96, x=f32[b, 64]
def biased(x):
    return x.var(0, unbiased=False) * 2.0


# mugraph: n=1..2, x=f32[n, 64]
def of_two_sizes(x):
    return x.var(0) * 2.0
"""
LEAST = {"standard": 2, "by_three": 3, "of_both": 1, "biased": 1, "of_two_sizes": 1}
"""Of two sizes none is left out: there would be no range."""
SHAPES = {"standard": "x=(n, 64)", "by_three": "x=(3, n, 32)"}


@pytest.fixture(scope="module")
def found(path: Path) -> Found:
    return solved(path, SHAPES)


def test_ranges_begin_where_something_is_divided_by(path: Path) -> None:
    ranges = {one.function: one.dynamic.range.least for one in trace_file(path).regions if one.dynamic is not None}
    assert ranges == LEAST


@pytest.mark.parametrize("name", SHAPES)
def test_they_are_right_from_there_on(found: Found, path: Path, name: str) -> None:
    assert [*found[name][0].least.values()] == [LEAST[name]]
    run_beside(path, name, found, SHAPES[name], str([LEAST[name], 7, 41, 50]), "n")

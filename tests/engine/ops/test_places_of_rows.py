"""One element of each row by an index of tensors, all places of the other dimensions in order: x[arange(n), y]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.units.outside import outside
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

Made = Callable[..., Any]
X, CUBE = randn(7, 5), randn(3, 4, 6)
Y = torch.tensor([0, 3, 4, 0, 1, 2, 2])

PICKED: dict[str, tuple[Made, dict[str, torch.Tensor]]] = {
    "cross-entropy": (lambda x, y: (-F.log_softmax(x, -1)[torch.arange(7), y]).mean(), {"x": X, "y": Y}),
    "places by the shape": (
        lambda x, y: torch.softmax(x, 1)[torch.arange(x.shape[0], device=x.device), y].log().sum(),
        {"x": X, "y": Y},
    ),
    "of the first dimension": (
        lambda x, y: torch.relu(x)[y, torch.arange(5)] * 2,
        {"x": X, "y": torch.tensor([6, 0, 0, 2, 5])},
    ),
    "fewer rows": (lambda x, y: torch.exp(x)[torch.arange(4), y], {"x": X, "y": Y[:4].clone()}),
    "of three dimensions": (
        lambda x, y: torch.tanh(x)[torch.arange(3)[:, None], torch.arange(4)[None, :], y],
        {"x": CUBE, "y": torch.tensor([[0, 5, 1, 2], [3, 3, 4, 1], [2, 2, 0, 5]])},
    ),
    "rows that stay": (
        lambda x, y: torch.relu(x)[torch.arange(3), y] + 1,
        {"x": CUBE, "y": torch.tensor([3, 0, 2])},
    ),
}


@pytest.mark.parametrize("name", PICKED)
def test_it_is_a_sum_over_the_row(name: str) -> None:
    function, tensors = PICKED[name]
    program = check(function, tensors).program
    assert verify_topology(program, as_block(program)).passed
    assert outside(record(function, tensors)) == ()


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x, y: torch.relu(x)[y], {"x": X, "y": Y}),  # rows, wherever they are
        (lambda x, y: torch.relu(x)[y, y], {"x": randn(7, 7), "y": Y}),
        (lambda x, y: torch.relu(x)[6 - torch.arange(7), y], {"x": X, "y": Y}),
        (lambda x, y: torch.relu(x)[:, y], {"x": X, "y": Y[:2].clone()}),
        (lambda x, y: torch.relu(x)[torch.arange(1, 7), y], {"x": X, "y": Y[:6].clone()}),
    ],
    ids=["one index", "two that are read", "other places", "a slice", "places from 1"],
)
def test_another_index_is_outside_and_named_with_its_line(function: Made, tensors: dict[str, torch.Tensor]) -> None:
    region = record(function, tensors)
    with pytest.raises(NotLowerable, match="index"):
        lower_region(region)
    ((name, lines),) = (one for one in outside(region) if "getitem" in one[0])
    assert name == "Tensor.__getitem__"
    assert len(lines) == 1


def test_the_loss_of_rows_is_right_as_a_kernel() -> None:
    tensors = {"x": randn(16, 24).float(), "y": torch.randint(0, 24, (16,))}
    program = lower_region(record(lambda x, y: -F.log_softmax(x, -1)[torch.arange(16), y], tensors)).program
    (row,) = (axis for axis in program.tensor("x").axes if axis in program.tensor("y").axes)
    source = lower(as_block(program), Schedule(((row, 4),), {}))
    with FloatTester() as tester:
        tested = tester.test_kernel(source, program, seed=3)
    assert tested.passed, tested.reason

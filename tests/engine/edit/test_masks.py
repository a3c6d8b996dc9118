"""What a kernel module asks of a mask before it counts on it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from mugraph.edit.module.masks import MASKS, triangle_text
from mugraph.edit.module.parts import PRELUDE
from mugraph.ir.calls import TensorInfo
from mugraph.trace.run.triangles import triangle_of

Holds = Callable[..., bool]


@pytest.fixture
def module() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec("import weakref\n" + PRELUDE + MASKS, names)
    return names


@pytest.fixture
def holds(module: dict[str, Any]) -> Holds:
    return module["_holds"]


def asked(holds: Holds, tensor: torch.Tensor, dtype: str) -> bool:
    """As the generated test asks."""
    triangle = triangle_of(tensor)
    assert triangle is not None
    info = TensorInfo(tuple(tensor.shape), tensor.stride(), dtype)
    return eval(f"holds(tensor, {triangle_text(triangle, info)})", {"holds": holds, "tensor": tensor})


@pytest.mark.parametrize(
    ("tensor", "dtype"),
    [
        (torch.ones(8, 8).tril(), "f32"),
        (torch.ones(1, 1, 8, 12, dtype=torch.bool).triu(2), "bool"),
        (torch.full((4, 8), float("-inf"), dtype=torch.float16).triu(1), "f16"),
        (torch.ones(3, 8, 8, dtype=torch.int64).tril(-1), "i64"),
        (torch.full((8, 8), -1e9).triu(1), "f32"),
    ],
)
def test_masks_hold_what_they_held(holds: Holds, tensor: torch.Tensor, dtype: str) -> None:
    assert asked(holds, tensor, dtype)
    assert asked(holds, tensor.clone(), dtype)
    assert not holds(tensor, 5, 1.0, 0.0)


def test_writes_are_seen(holds: Holds) -> None:
    mask = torch.ones(8, 8).tril()
    assert holds(mask, 0, 1.0, 0.0)
    mask[0, 7] = 1.0
    assert not holds(mask, 0, 1.0, 0.0)
    mask[0, 7] = 0.0
    assert holds(mask, 0, 1.0, 0.0)
    mask[2:, 1].fill_(3.0)  # through a view
    assert not holds(mask, 0, 1.0, 0.0)
    mask.data = torch.ones(8, 8).tril()
    assert holds(mask, 0, 1.0, 0.0)


def test_another_tensor_is_looked_at_again(holds: Holds, module: dict[str, Any]) -> None:
    for number in range(20):
        mask = torch.ones(8, 8).tril(number % 2)
        assert holds(mask, 0, 1.0, 0.0) == (number % 2 == 0)
        del mask
        gc.collect()
    assert len(module["_looked"]) <= 20


def test_a_mask_made_for_every_call_is_given_up(holds: Holds) -> None:
    answers: list[bool] = []
    kept = torch.ones(4, 4).tril()
    assert holds(kept, 0, 1.0, 0.0)
    alive = [torch.ones(4, 4).tril() for _ in range(100)]
    assert all(holds(mask, 0, 1.0, 0.0) for mask in alive), "one for each of many layers"
    alive.clear()
    gc.collect()
    answers = [holds(torch.ones(4, 4).tril(), 0, 1.0, 0.0) for _ in range(3)]
    assert not any(answers)
    assert holds(kept, 0, 1.0, 0.0), "known ones stay known"


def test_one_that_keeps_no_version_is_never_known(holds: Holds) -> None:
    with torch.inference_mode():
        mask = torch.ones(4, 4).tril()
    assert not holds(mask, 0, 1.0, 0.0)


def test_the_text_is_python() -> None:
    ast.parse(MASKS)

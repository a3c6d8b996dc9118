"""What a kernel module asks of tensors that a kernel writes over, and what it tells autograd of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mugraph.edit.module.judge import JUDGE
from mugraph.edit.module.masks import MASKS
from mugraph.edit.module.parts import IMPORTS, MACHINERY
from mugraph.edit.module.writers import WRITERS

WHOLE = torch.arange(96.0)


@pytest.fixture(scope="module")
def module() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "kernels"}
    exec(f"{IMPORTS}\n\n{MACHINERY}\n\n{WRITERS}\n\n{MASKS}\n\n{JUDGE}", names)
    return names


APART = {
    "of their own": (torch.zeros(4, 6), torch.zeros(4, 6)),
    "neighbours": (WHOLE[:24].view(4, 6), WHOLE[24:48].view(4, 6)),
    "the other way round": (WHOLE[24:48], WHOLE[:24]),
    "of nothing": (WHOLE[:0], WHOLE),
    "of one element": (WHOLE[5], WHOLE[6:]),
    "one behind the other in columns": (WHOLE[:24].view(6, 4).T, WHOLE[24:48]),
}
TOGETHER = {
    "the same": (WHOLE, WHOLE),
    "views of the same": (WHOLE.view(8, 12), WHOLE[:24]),
    "a row of it": (WHOLE[60:61], WHOLE.view(8, 12)),
    "an element in both": (WHOLE[:25], WHOLE[24:48]),
    "as another type": (WHOLE[:12], WHOLE.view(torch.int32)[11:20]),
    "between one another": (WHOLE[::2], WHOLE[1::2]),
    "turned about": (WHOLE.view(8, 12).T, WHOLE[90:]),
}


@pytest.mark.parametrize("name", APART)
def test_tensors_that_lie_apart(module: dict[str, Any], name: str) -> None:
    assert module["_lie_apart"](1, *APART[name])
    assert module["_lie_apart"](2, *APART[name])


@pytest.mark.parametrize("name", TOGETHER)
def test_tensors_that_share_memory(module: dict[str, Any], name: str) -> None:
    one, other = TOGETHER[name]
    far = torch.zeros(3)
    assert not module["_lie_apart"](1, one, other)
    assert not module["_lie_apart"](2, far, one, other)
    assert not module["_lie_apart"](1, other, far, one)
    assert module["_lie_apart"](1, far, one, other)  # of those that are only read it does not matter


def test_what_inference_has_made_is_written_to_there_alone(module: dict[str, Any]) -> None:
    apart: Callable[..., bool] = module["_lie_apart"]
    with torch.inference_mode():
        made = torch.zeros(4)
        assert apart(1, made, WHOLE)
        module["_count_write"](made)
    assert not apart(1, made, WHOLE)
    assert apart(1, WHOLE, made)
    with pytest.raises(RuntimeError), torch.no_grad():
        made.add_(1.0)  # as PyTorch itself refuses it


def test_autograd_is_told(module: dict[str, Any]) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    loss = (weight * weight).sum()
    before = weight._version
    with torch.no_grad():
        module["_count_write"](weight)
    assert weight._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_each_side_is_compared_on_inputs_as_they_were(module: dict[str, Any]) -> None:
    """A step that is made twice is another one."""

    def step(p: torch.Tensor, g: torch.Tensor) -> None:
        p.mul_(0.5).add_(g)

    def wrong(p: torch.Tensor, g: torch.Tensor) -> None:
        p.mul_(0.5).add_(g).mul_(1 + 2**-12)

    spec = ((8, 40), (50, 1), torch.float32, 1.0)  # its rows do not touch
    module["_TF32"] = {}
    for ours, is_right in ((step, True), (wrong, False)):
        module["_CASES"] = {"case": (ours, step, None, (spec, spec), (0,))}
        ((_, trouble),) = module["_errors"]("case", torch.device("cpu"))
        assert (trouble is None) == is_right

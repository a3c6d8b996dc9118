"""Programs that round: how many elements are a step off."""

from __future__ import annotations

import pytest
import torch
from mugraph.tune.agreeing import Function, agree
from mugraph.tune.apart import Apart
from mugraph.tune.messages import Agreed, InputSpec

ROWS = InputSpec((512, 256), (256, 1), "f32")


def found(mine: Function, reference: Function, *, jumps: bool = True) -> Agreed:
    agreed = agree(mine, reference, [ROWS], torch.Generator("cpu").manual_seed(1), jumps=jumps)
    assert isinstance(agreed, Agreed)
    return agreed


def codes(x: torch.Tensor, most: float = 127.0, wrong: float = 1.0) -> torch.Tensor:
    scale = x.float().abs().amax(-1, keepdim=True) / most
    return torch.round(x.float() * wrong / scale).clamp(-most - 1, most).to(torch.int8)


def in_another_order(x: torch.Tensor, most: float = 127.0) -> torch.Tensor:
    """A few elements become the number beside: the error is larger than that of another order, to have some."""
    return codes(x, most, 1 + 2e-6)


def pretended(x: torch.Tensor, wrong: float = 1.0) -> torch.Tensor:
    """In four bits, of which a step is a seventh of the largest."""
    scale = x.float().abs().amax(-1, keepdim=True) / 7.0
    return (codes(x, 7.0, wrong) * scale).to(torch.bfloat16)


def test_a_few_elements_may_be_a_step_off() -> None:
    ours = found(in_another_order, codes)
    assert ours.passed
    assert 0.0 < ours.error < 1e-3
    assert not found(in_another_order, codes, jumps=False).passed


def test_so_of_values_that_are_kept_in_more_bits() -> None:
    def ours(x: torch.Tensor) -> torch.Tensor:
        return pretended(x, 1 + 2e-5)

    assert found(ours, pretended).passed
    assert not found(ours, pretended, jumps=False).passed
    assert not found(lambda x: ours(x) * 1.2, pretended).passed


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_is_compared(dtype: torch.dtype) -> None:
    def to(x: torch.Tensor) -> torch.Tensor:
        return (x.float() * 8).to(dtype)

    assert found(lambda x: (x.float() * 8.000001).to(dtype), to).passed
    assert not found(lambda x: (x.float() * 8.1).to(dtype), to).passed


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: (x.float() * 127.0 / x.float().abs().amax(-1, keepdim=True)).to(torch.int8),  # toward zero
        lambda x: torch.cat((codes(x)[:-4], codes(x)[:4])),  # the last rows alone
        lambda x: codes(x[:, :128]).repeat(1, 2),
    ],
)
def test_wrong_ones_are_seen(wrong: Function) -> None:
    assert not found(wrong, codes).passed


def test_what_is_no_number_in_both_is_the_same() -> None:
    one = Apart(torch.float32)
    odd = torch.tensor([float("nan"), float("inf"), 1.0, 2.0])
    one.add(odd, odd)
    assert one.share == 0.0
    one.add(torch.tensor([float("nan"), 1.0, 1.0, 2.0]), torch.tensor([1.0, 1.0, 1.0, 2.0]))
    assert one.share == 1 / 8

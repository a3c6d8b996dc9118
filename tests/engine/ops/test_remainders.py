"""Remainders that are exact are parts of kernels; others are PyTorch's."""

from __future__ import annotations

import pytest
import torch
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import evaluate, lower_region, parts, record


def test_a_power_of_two_divides_exactly() -> None:
    numbers = torch.cat([torch.randn(4096) * 10.0**e for e in range(-8, 9)]).float()
    for divisor in (2.0, 0.5, -4.0, 1.0):
        times = torch.floor(numbers * (1.0 / divisor))
        assert torch.equal(numbers - times * divisor, torch.remainder(numbers, divisor))
        assert torch.equal(numbers - torch.trunc(numbers * (1.0 / divisor)) * divisor, torch.fmod(numbers, divisor))


@pytest.mark.parametrize("divisor", [3.0, 0.1, 6, 0.0])
def test_another_divisor_is_not_taken(divisor: float) -> None:
    """A rounded quotient may be the next whole number, where the remainder would be less than nothing."""
    with pytest.raises(NotLowerable, match="no power of two"):
        lower_region(record(lambda x: torch.remainder(x, divisor) * 2.0, {"x": torch.randn(4, 8)}))


def test_nor_a_product_that_is_not_rounded_in_between() -> None:
    with pytest.raises(NotLowerable, match="a product or a sum"):
        lower_region(record(lambda x: (x * 0.3) % 1.0 + x, {"x": torch.randn(4, 8)}))
    lowered = lower_region(record(lambda x: torch.sin(x * 0.3) % 1.0 + x, {"x": torch.randn(4, 8)}))
    assert any(op.kind.opaque is not None and op.kind.opaque.jumps for op in lowered.program.ops)


@pytest.mark.parametrize("divisor", [2, 4, -2])
def test_of_places_it_is_what_pytorch_has(divisor: int) -> None:
    x = torch.randn(5, 6, dtype=torch.float64)
    lowered = lower_region(record(lambda x: x * (torch.arange(6) % divisor), {"x": x.float()}))
    (found,) = evaluate(lowered.program, parts(lowered, {0: x})).values()
    assert torch.equal(found, x * (torch.arange(6) % divisor))

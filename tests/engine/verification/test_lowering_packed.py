"""Programs that read bytes of packed integers, beside PyTorch's own calls: which bits they take is seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ops.algebra import packed
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.building import Axes
from mugraph.ops.algebra.nodes import Node
from mugraph.verification.lowering.run import beside_calls

from tests.engine.ops.harness import randn
from tests.engine.verification.recorded_units import unit_from

WORDS = torch.arange(24, dtype=torch.int32).view(6, 4)
"""Their numbers play no role: others are drawn."""
OfByte = Callable[[Axes, Node, AtomDim, int, int], Node]


def in_order(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    codes = (w[:, :, None] >> torch.arange(0, 32, 4)) & 0xF
    return x @ codes.reshape(6, -1).to(x.dtype).T


def highest(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return ((w >> 28) & 0xF).to(x.dtype) * x[:, :4].sum()


FUNCTIONS = {"in order": in_order, "the highest": highest}


def swapped(right: OfByte) -> OfByte:
    return lambda b, x, byte, by, mask: right(b, x, byte, 4 - by, mask)


def none(right: OfByte) -> OfByte:
    return lambda b, x, byte, by, mask: right(b, x, byte, by, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_right_ones_are_accepted(name: str) -> None:
    assert beside_calls(unit_from(FUNCTIONS[name], w=WORDS, x=randn(6, 32)), 0).passed


@pytest.mark.parametrize("wrong", [swapped, none])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_bits_are_refused(name: str, wrong: Callable[[OfByte], OfByte], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_of_byte", wrong(packed._of_byte))  # pyright: ignore[reportPrivateUsage]
    result = beside_calls(unit_from(FUNCTIONS[name], w=WORDS, x=randn(6, 32)), 0)
    assert result.passed is False
    assert "other numbers" in result.reason

"""Maxima that softmaxes are shifted by: left to the kernel where no output depends on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import check, lower_region, randn, record

X, Y = randn(4, 6), randn(4, 6, seed=1)


@pytest.mark.parametrize(
    "shifted",
    [
        lambda x: x - x.amax(-1, keepdim=True),
        lambda x: (x - x.max(dim=-1, keepdim=True)[0]) * 0.5,
        lambda x: (x * 0.5 + 1.0) - (x * 0.5 + 1.0).max(-1, keepdim=True).values,
        lambda x: x.tril() + x.triu(1) - x.amax(),  # of all rows
    ],
)
def test_a_maximum_that_no_output_depends_on_is_left_to_the_kernel(shifted: Callable[..., torch.Tensor]) -> None:
    def softmax(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        e = torch.exp(shifted(x))
        return (e @ v) / e.sum(-1, keepdim=True)

    program = check(softmax, {"x": X, "v": randn(6, 5)}).program
    assert not any(op.kind is Kind.AMAX for op in program.ops)
    assert any(op.kind is Kind.EXP for op in program.ops)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.exp(x - x.amax(-1, keepdim=True)) @ y.T,
        lambda x, y: (e := torch.exp(x - x.amax(-1, keepdim=True))) / (e.sum(-1, keepdim=True) + 1.0),
        lambda x, y: (e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(0, keepdim=True),
        lambda x, y: (e := torch.exp(s := x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True) * s,
        lambda x, y: (e := torch.exp(x - y.amax(0, keepdim=True))) / e.sum(-1, keepdim=True),
    ],
)
def test_a_maximum_that_an_output_depends_on_stays(function: Callable[..., torch.Tensor]) -> None:
    """No quotient; something added to the sum; the sum along other rows; the difference itself; other rows' maximum."""
    program = check(function, {"x": X, "y": Y}).program
    assert any(op.kind is Kind.AMAX for op in program.ops)


def test_the_maximum_of_what_a_mask_leaves_is_that_of_a_softmax_alone() -> None:
    def causal(x: torch.Tensor, softmax: bool) -> torch.Tensor:
        hidden = torch.ones(5, 5, dtype=torch.bool).tril().logical_not()
        s = x.masked_fill(hidden, float("-inf"))
        top = s.amax(-1, keepdim=True)
        e = torch.exp(s - top)
        return e / e.sum(-1, keepdim=True) if softmax else x * top

    check(lambda x: causal(x, True), {"x": randn(5, 5)})
    with pytest.raises(NotLowerable, match="a mask hides"):
        lower_region(record(lambda x: causal(x, False), {"x": randn(5, 5)}))

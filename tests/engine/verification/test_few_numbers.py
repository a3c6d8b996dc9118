"""Results of 16 bits that are rounded to nearest are right, though they lean: equal numbers are rounded alike, and that
does not even out among millions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.edit.module.judge import JUDGE
from mugraph.verification.judge import Compared
from mugraph.verification.roundings import SPREAD

SHAPE = 256, 1024
EVEN = 9 * 2.0**-24
"""What float_child allows a program without sums."""
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softsign": lambda x: x / (1 + x.abs()),
    "gelu": F.gelu,
    "silu": F.silu,
    # Less than half a unit of most numbers, of another size in each row: rounded away in all of it.
    "lost": lambda x: x + 1e-4 * torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)[:, None] / len(x),
}


def compared(name: str, dtype: torch.dtype, wrong: Callable[[torch.Tensor], torch.Tensor]) -> Compared:
    """wrong: what is made of the exact result before it is rounded"""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(SHAPE, generator=random).to(dtype)
    exact, eager = FUNCTIONS[name](x.double()), FUNCTIONS[name](x).double()
    largest = torch.finfo(dtype).eps / 2
    draws = [
        exact * (1 + largest * SPREAD * 12**0.5 * (torch.rand(SHAPE, generator=random, dtype=torch.float64) - 0.5))
        for _ in range(4)
    ]
    return Compared(wrong(exact).to(dtype).double(), exact, eager, draws, dtype, EVEN)


CASES = [("softsign", "float16"), ("gelu", "bfloat16"), ("silu", "bfloat16"), ("gelu", "float16"), ("lost", "float16")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_what_is_rounded_to_nearest_is_right(name: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    assert compared(name, kind, lambda exact: exact).trouble() is None
    for factor in (1 + torch.finfo(kind).eps / 4, 1 - torch.finfo(kind).eps / 4):
        said = compared(name, kind, lambda exact, factor=factor: exact * factor).trouble()
        assert "too large by" in (said or "")


def test_what_is_rounded_down_is_not() -> None:
    def down(exact: torch.Tensor) -> torch.Tensor:
        nearest = exact.half().double()
        return torch.where(nearest > exact, nearest - 2.0**-11 * nearest.abs(), nearest)

    assert compared("softsign", torch.float16, down).trouble() is not None


def test_largest_numbers_are_no_excuse() -> None:
    """The nearest of float16 is infinite for what is just below it."""
    one = compared("gelu", torch.float16, lambda exact: exact * 1.0003)
    exact = one.exact.clone()
    exact[0, :8] = 65519.99
    exact[0, 8:16] = 65520.0
    result, eager = (torch.where(exact == one.exact, given, 65504.0) for given in (one.result, one.eager))
    draws = [torch.where(exact == one.exact, draw, 65504.0) for draw in one.draws]
    assert Compared(result, exact, eager, draws, one.dtype, EVEN).trouble() is not None


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_so_it_is_at_the_first_use(name: str, dtype: str) -> None:
    space: dict[str, object] = {"torch": torch, "functools": __import__("functools")}
    text = JUDGE[JUDGE.index("def _trouble(") : JUDGE.index("def _errors(")]
    exec(text, space)
    judge, one = space["_trouble"], compared(name, getattr(torch, dtype), lambda exact: exact)
    wrong = compared(name, getattr(torch, dtype), lambda exact: exact * (1 + torch.finfo(one.dtype).eps / 4))
    known = torch.ones(SHAPE, dtype=torch.bool)
    for each, right in ((one, True), (wrong, False)):
        given = each.result.to(each.dtype), each.eager.to(each.dtype), each.exact, list(each.draws), known, 1, True
        assert (judge(*given) is None) == right  # type: ignore[operator]

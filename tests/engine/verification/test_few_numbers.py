"""Results of 16 bits that are rounded to nearest are right, though they lean: equal numbers are rounded alike, and that
does not even out among millions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

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
    """The nearest of float16 is infinite for one number of each row and column, and all others are too large."""
    random = torch.Generator().manual_seed(0)
    exact = 33000 + 25000 * torch.rand(SHAPE, generator=random, dtype=torch.float64)
    for row in range(SHAPE[0]):
        exact[row, row :: SHAPE[0]] = 65520.0
    assert bool(exact.half().isinf().any(0).all())

    def rounded(values: torch.Tensor) -> torch.Tensor:
        return values.half().double().clamp(max=65504.0)

    draws = [rounded(exact + 16 * (torch.rand(SHAPE, generator=random, dtype=torch.float64) - 0.5)) for _ in range(4)]
    right, wrong = (
        Compared(rounded(made), exact, rounded(exact), draws, torch.float16, EVEN) for made in (exact, exact * 1.0003)
    )
    assert right.trouble() is None
    assert "too large by" in (wrong.trouble() or "")


@pytest.mark.parametrize(("places", "right"), [(1, True), (-1, True), (5, False), (-5, False), (700, False)])
def test_one_number_has_its_own_rounding_and_that_of_a_factor(places: int, right: bool) -> None:
    """A mean of 700 numbers is their sum times 1/700, which float32 does not have. places: of the last one of a
    float32, by which it is off; 700 without one of the numbers"""
    exact = torch.tensor(1.0371, dtype=torch.float64)
    nearest = exact.float().double()
    random = torch.Generator().manual_seed(0)
    errors = [torch.randn((), generator=random, dtype=torch.float64) * SPREAD * 2.0**-24 for _ in range(4)]
    wrong = nearest * (1 - 1 / 700) if places == 700 else nearest + places * 2.0**-23
    one = Compared(wrong, exact, nearest, [exact * (1 + error) for error in errors], torch.float32, EVEN)
    assert (one.trouble() is None) == right
    assert (first_use(one) is None) == right


def first_use(one: Compared) -> str | None:
    """What a kernel module says of the same numbers."""
    space: dict[str, Any] = {"torch": torch, "functools": functools}
    exec(JUDGE[JUDGE.index("def _trouble(") : JUDGE.index("def _errors(")], space)
    got, expected = (given.to(one.dtype) for given in (one.result, one.eager))
    known = torch.ones(one.exact.shape, dtype=torch.bool)
    return space["_trouble"](got, expected, one.exact, list(one.draws), known, longest=1, even=True)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_so_it_is_at_the_first_use(name: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    assert first_use(compared(name, kind, lambda exact: exact)) is None
    biased = compared(name, kind, lambda exact: exact * (1 + torch.finfo(kind).eps / 4))
    assert first_use(biased) == "its errors lean to one side"

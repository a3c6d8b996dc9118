"""Results of few different numbers: equal ones are rounded alike, and that does not even out among millions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.verification.float_child import _even
from mugraph.verification.judge import Compared
from mugraph.verification.roundings import SPREAD

from tests.engine.ops.harness import lower_region, record

COUNT = 1 << 22
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]] = {
    "softsign": (lambda x: x / (1 + torch.abs(x)), lambda x: x / (1 + x.abs())),
    "gelu": (lambda x: F.gelu(x), F.gelu),
    "silu": (lambda x: F.silu(x), F.silu),
    "centred": (lambda x: x - x.mean(-1, keepdim=True), lambda x: x - x.mean(-1, keepdim=True)),
}
"""As it is recorded, and as it is computed."""


def even_of(name: str, dtype: torch.dtype) -> float:
    return _even(lower_region(record(FUNCTIONS[name][0], {"x": torch.randn(64, 64).to(dtype)})).program)


def judged(even: float, name: str, dtype: torch.dtype, factor: float = 1.0) -> str | None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(COUNT, generator=random).to(dtype)
    exact = FUNCTIONS[name][1](x.double())
    result, eager = (exact * factor).to(dtype).double(), FUNCTIONS[name][1](x).double()
    largest = torch.finfo(dtype).eps / 2
    draws = [
        exact * (1 + largest * SPREAD * 3**0.5 * 2 * (torch.rand(COUNT, generator=random, dtype=torch.float64) - 0.5))
        for _ in range(4)
    ]
    shape = 2048, 2048
    return Compared(
        result.view(shape), exact.view(shape), eager.view(shape), [one.view(shape) for one in draws], dtype, even
    ).trouble()


@pytest.mark.parametrize(("name", "dtype"), [("softsign", "f16"), ("gelu", "bf16"), ("silu", "bf16"), ("gelu", "f16")])
def test_what_is_rounded_to_nearest_is_right(name: str, dtype: str) -> None:
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    even = even_of(name, kind)
    assert judged(even, name, kind) is None
    assert judged(even, name, kind, 1 + torch.finfo(kind).eps / 4) is not None


def test_without_room_for_that_it_leans() -> None:
    assert "too large by" in (judged(9 * 2.0**-24, "softsign", torch.float16) or "")


def test_sums_have_no_such_room() -> None:
    """There many numbers are mixed: a factor of (n - 1) / n is told."""
    assert even_of("centred", torch.float16) < 5e-6
    assert even_of("softsign", torch.float32) < 1e-6

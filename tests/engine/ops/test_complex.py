"""Complex numbers as pairs of real ones, in the forms rotary embeddings are written in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import check, lower_region, randn, record

X, W = randn(3, 5, 4, 8), randn(3, 5, 4, 8, seed=1)
ANGLES = randn(5, 4, seed=2)


def pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


def turns(angles: torch.Tensor) -> torch.Tensor:
    return torch.polar(torch.ones_like(angles), angles)[None, :, None, :]


ROTATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "all of it": lambda x, a: torch.view_as_real(pairs(x) * turns(a)).flatten(3),
    "one part": lambda x, a: torch.view_as_real(pairs(x) * turns(a))[..., 1] * 2.0,
    "the conjugate": lambda x, a: torch.view_as_real(pairs(x) * turns(a).conj()).flatten(3),
    "scaled": lambda x, a: torch.view_as_real(pairs(x) * turns(a) * 0.5).flatten(3),
    "by a real tensor": lambda x, a: torch.view_as_real(pairs(x) * a[None, :, None, :]).flatten(3),
    "sums": lambda x, a: torch.view_as_real(pairs(x) - turns(a) * pairs(x)).flatten(3),
    "halves of complex numbers": lambda x, a: torch.view_as_real((pairs(x) * turns(a))[..., 2:]).flatten(3),
    "moved": lambda x, a: torch.view_as_real((pairs(x) * turns(a)).transpose(1, 2)).flatten(3),
    "scores": lambda x, a: torch.view_as_real(pairs(x) * turns(a)).flatten(3) @ x.mT,
    "after a norm": lambda x, a: torch.view_as_real(pairs(torch.nn.functional.rms_norm(x, (8,))) * turns(a)).flatten(3),
}


@pytest.mark.parametrize("name", ROTATIONS)
def test_rotation(name: str) -> None:
    check(ROTATIONS[name], {"x": X, "a": ANGLES})


def test_a_complex_input_is_read_through_its_parts() -> None:
    def rotate(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(pairs(x) * turns[None, :, None, :]).flatten(3)

    factors = torch.polar(torch.ones(5, 4), ANGLES)
    lowered = lower_region(record(rotate, {"x": X, "turns": factors}))
    texts = {view.text for view in lowered.views.values()}
    assert {".real", ".imag"} <= texts
    assert [op.kind for op in lowered.program.ops].count(Kind.MASK) == 2


REFUSED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "length": lambda x, a: pairs(x).abs() * 2.0,
    "a real number added": lambda x, a: torch.view_as_real(pairs(x) + 1.0).flatten(3),
    "a real tensor added": lambda x, a: torch.view_as_real(pairs(x) + a[None, :, None, :]).flatten(3),
    "a quotient": lambda x, a: torch.view_as_real(pairs(x) / turns(a)).flatten(3),
    "a product of matrices": lambda x, a: torch.view_as_real(pairs(x) @ pairs(x).mT).flatten(3),
    "an exponential": lambda x, a: torch.view_as_real(pairs(x).exp()).flatten(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(NotLowerable, match=r"complex|outside"):
        lower_region(record(REFUSED[name], {"x": X, "a": ANGLES}))

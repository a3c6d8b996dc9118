"""Whether PyTorch takes TF32 for what may take it."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch
from mugraph.ir.ops import Tf32
from mugraph.tune.digits import keeps_digits
from mugraph.tune.messages import InputSpec
from mugraph.tune.timing import norms_apart

from tests.support.tf32 import as_tf32


class Library:
    """Multiplies in TF32, or in another order, where it is allowed to."""

    def __init__(self, rounds: str) -> None:
        self.rounds, self.allowed = rounds, True
        self.taken: list[tuple[Tf32, ...]] = []

    def take(self, settings: Collection[Tf32]) -> None:
        self.taken.append(tuple(settings))
        self.allowed = bool(settings)

    def __call__(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if not self.allowed or self.rounds == "nothing":
            return x @ weight
        if self.rounds == "another order":
            half = x.shape[1] // 2
            return x[:, :half] @ weight[:half] + x[:, half:] @ weight[half:]
        return (as_tf32(x) if self.rounds == "both" else x) @ as_tf32(weight)


@pytest.mark.parametrize("length", [16, 256, 8192])
@pytest.mark.parametrize(
    ("rounds", "keeps"), [("nothing", True), ("another order", True), ("both", False), ("weights", False)]
)
def test_it_is_seen_in_what_comes_out(rounds: str, keeps: bool, length: int) -> None:
    library = Library(rounds)
    specs = InputSpec((64, length), (length, 1), "f32"), InputSpec((length, 48), (48, 1), "f32")
    found = keeps_digits(library, specs, torch.Generator().manual_seed(3), ("cudnn",), library.take)
    assert found.digits is keeps
    assert library.taken == [("cudnn",), ()]


def test_what_is_no_number_keeps_nothing() -> None:
    specs = (InputSpec((8, 8), (8, 1), "f32"),)
    found = keeps_digits(lambda x: x * float("nan"), specs, torch.Generator().manual_seed(3), (), lambda _: None)
    assert not found.digits


def test_norms() -> None:
    one = torch.tensor([3.0, 4.0])
    assert norms_apart(one, one) == 0
    assert norms_apart(torch.tensor([3.0, 4.5]), one) == pytest.approx(0.1)
    assert norms_apart(torch.zeros(2), torch.zeros(2)) == 0
    assert norms_apart(one, torch.zeros(2)) == 5

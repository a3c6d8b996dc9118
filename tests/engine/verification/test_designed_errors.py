"""Draws of errors with designed signs: every combination of three places is in them, and what random signs miss."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import torch
import torch.nn.functional as F
from mugraph.verification.codes import Codes, errors_of
from mugraph.verification.designed import DRAWS, Signs
from mugraph.verification.roundings import Eager, Perturbed, Single
from mugraph.verification.torch_reference import Rounding, evaluate, outputs
from torch import Tensor

from tests.engine.ops.harness import lower_region, record

PLACES = range(12)
ROWS, COLUMNS = 64, 2048
FEW = 16
"""Draws of random signs that are made first; of millions of elements, four times as many miss one or two."""


def test_any_three_places_have_all_combinations_of_signs_equally_often() -> None:
    table: list[list[int]] = []
    for draw in range(DRAWS):
        signs = Signs(draw)
        table.append([signs.of(place) for place in PLACES])
    for three in combinations(PLACES, 3):
        found = Counter(tuple(row[place] for place in three) for row in table)
        assert set(found) == set(product((1, -1), repeat=3))
        assert set(found.values()) == {DRAWS // 8}


def test_the_sign_of_a_place_stays() -> None:
    signs = Signs(5)
    first = [signs.of(place) for place in PLACES]
    assert [signs.of(place) for place in PLACES] == first


def quantised(x: Tensor) -> Tensor:
    y = F.rms_norm(x, (COLUMNS,), None, 1e-6).float()
    return torch.round(y / (y.abs().amax(-1, keepdim=True) / 127.0)).clamp(-128, 127).to(torch.int8)


def test_what_random_signs_miss() -> None:
    """Quotients by the largest of their row, half of them in the middle between two codes. A largest number of many
    has always an error upwards, so that random errors seldom make a quotient larger than it is: where a kernel's
    were, by an error of float32's, they do not explain all of its codes."""
    empty = torch.empty(ROWS, COLUMNS, dtype=torch.float16, device="meta")
    program = lower_region(record(quantised, {"x": empty})).program
    random = torch.Generator().manual_seed(0)
    x = torch.randint(-254, 255, (ROWS, COLUMNS), generator=random).half()
    x[:, 0] = 254.0

    def of(rounding: Rounding | None) -> Tensor:
        return outputs(program, evaluate(program, {"x": x}, rounding))["out"]

    exact = of(None)
    larger = (x.double() / 2 * (1 + 2e-7)).round().clamp(-128, 127)
    codes = Codes(larger, exact, of(Eager(program)), of(Single()), torch.int8, ties=True)
    assert codes.trouble(lambda number: of(errors_of(program, random, number))) is None
    missed = codes.trouble(lambda number: of(Perturbed(program, random, 3.0)) if number < FEW else exact)
    assert "rounding does not explain" in (missed or "")
    worse = (x.double() / 2 * 1.004).round().clamp(-128, 127)
    assert Codes(worse, exact, of(Eager(program)), of(Single()), torch.int8, ties=True).trouble(
        lambda number: of(errors_of(program, random, number))
    )

"""Random programs with concatenations, slices and products of equal widths: cut and joined, they compute the region."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from mugraph.ir.region import SearchUnit
from mugraph.ir.spec import check_program
from mugraph.units.joining import units

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import run

HEADS, WIDTH, CACHED = 2, 4, 3


def _halves(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((b * -1.0, a), -1)


def _drawn(rng: random.Random) -> Callable[..., Any]:
    """Projections of one input, some of them turned, shortened, or put behind a cache; several are returned, beside
    what is made of two of them."""
    widths = [rng.choice((1, 2)) for _ in range(rng.randint(2, 4))]
    steps = [[rng.choice(("cat", "slice", "halves", "add", "none")) for _ in range(2)] for _ in widths]
    order = rng.sample(range(len(widths)), len(widths))
    returned = rng.sample(range(len(widths)), rng.randint(1, len(widths)))
    meet = rng.random() < 0.6

    def program(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, c: torch.Tensor) -> Any:
        made: list[torch.Tensor] = []
        for number, width in enumerate(widths):
            weight = (w1 if width == 1 else w2) * float(number + 1)
            t = (x @ weight).view(-1, HEADS, WIDTH).transpose(0, 1)
            for step in steps[number]:
                if step == "cat":
                    t = torch.cat((c * 0.5, t), dim=1)
                elif step == "slice":
                    t = t[:, -2:]
                elif step == "halves":
                    t = _halves(t)
                elif step == "add":
                    t = t + 1.0
            made.append(t)
        made = [made[number] for number in order]
        results = [made[number] for number in returned]
        if meet:
            results.append(made[0] @ made[-1].transpose(1, 2))
        return tuple(results)

    return program


@pytest.mark.parametrize("seed", range(60))
def test_they_compute_the_region(seed: int) -> None:
    fn = _drawn(random.Random(seed))
    width = HEADS * WIDTH
    inputs = {"x": randn(5, 6), "w1": randn(6, width), "w2": randn(6, width, seed=1), "c": randn(HEADS, CACHED, WIDTH)}
    region = record(fn, inputs)
    parts = units(region)
    assert all(check_program(part.program) == [] for part in parts if isinstance(part, SearchUnit))
    found = run(region, parts, inputs)
    for live, expected in zip(region.live_outs, fn(**{k: t.double() for k, t in inputs.items()}), strict=True):
        torch.testing.assert_close(found[live.value], expected, rtol=1e-4, atol=1e-5, check_dtype=False)


def test_what_is_renamed_in_one_output_is_renamed_in_all() -> None:
    """The third output shares an axis with the second, and another one with the first."""

    def layer(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, cache: torch.Tensor) -> Any:
        q = (x @ a).view(4, 8, 16).transpose(0, 1)
        k = torch.cat((cache, (x @ b).view(4, 2, 16).transpose(0, 1)), dim=1)
        return q, k, (q.reshape(2, 4, 4, 16) * 0.5) @ k[:, None].transpose(-1, -2)

    inputs = {"x": randn(4, 32), "a": randn(32, 128), "b": randn(32, 32), "cache": randn(2, 12, 16)}
    region = record(layer, inputs)
    found = run(region, units(region), inputs)
    for live, expected in zip(region.live_outs, layer(**{k: t.double() for k, t in inputs.items()}), strict=True):
        torch.testing.assert_close(found[live.value], expected, rtol=1e-4, atol=1e-5, check_dtype=False)

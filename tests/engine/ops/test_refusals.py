"""What is not lowered, and the reason that is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import lower_region, randn, record

X, Y, V = randn(4, 6), randn(4, 6, seed=1), randn(6)
POSITIVE = randn(4, 6).abs() + 0.5

REFUSED: dict[str, tuple[Callable[..., Any], dict[str, torch.Tensor], str]] = {
    "sizes that do not nest": (lambda x: x.view(2, 3).transpose(0, 1).reshape(2, 3) * 2, {"x": V}, "nest"),
    "a slice across rows": (lambda x: (x * 2).view(24)[3:17] + 1, {"x": X}, "whole pieces"),
    "unknown call": (lambda x: torch.cumprod(x, 0), {"x": X}, "no rule"),
    "integers": (lambda x, i: x * i, {"x": X, "i": torch.arange(6)}, "i64"),
    "all of a masked row, by an argument": (
        lambda x, m: x.masked_fill(m, float("-inf")).sum(1), {"x": X, "m": X > 0}, "minus infinity"
    ),
    "classes of another shape": (
        lambda x, t: F.cross_entropy(x * 2, t.float()[:, None].expand(4, 6)[:1].expand(4, 6)),
        {"x": X, "t": torch.arange(4)}, "i64",
    ),
    "training": (lambda x: F.dropout(x, 0.5, True), {"x": X}, "random"),
    "output that is an input": (lambda x: x.view(24), {"x": X}, "as it is"),
    "broadcast output": (lambda x: (x * 2).expand(3, 4, 6), {"x": X}, "repeats"),
    "diagonal": (lambda x: torch.einsum("ii->i", x), {"x": randn(4, 4)}, "diagonal"),
    "rounded division": (lambda x: torch.div(x, 2.0, rounding_mode="floor"), {"x": X}, "rounded"),
    "a slice up to a tensor": (lambda x, n: x[:n] * 2, {"x": X, "n": torch.tensor(4)}, "run time"),
    "spectral norm": (lambda x: x / torch.linalg.norm(x, 2), {"x": X}, "Euclidean"),
    "another norm": (lambda x: F.normalize(x, p=3.0, dim=-1), {"x": X}, "Euclidean"),
    "division by zero": (lambda x: x / 0.0, {"x": X}, "zero"),
    "an infinite number": (lambda x: x * math.inf, {"x": X}, "infinite"),
    "double precision": (lambda x: x.double() * 2, {"x": X}, "f64"),
    "integers in between": (lambda x: x.to(torch.int64).float() * 2, {"x": X}, "i64"),
    "sum of integers": (lambda x, i: x * i.sum(), {"x": X, "i": torch.arange(6)}, "i64"),
    "attention with dropout": (lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5),
                               {"q": randn(2, 4, 6)}, "random"),
    "a window of a value": (lambda x, w: F.conv1d(x * x, w), {"x": randn(2, 3, 5), "w": randn(4, 3, 2)},
                            "computed here"),
    "a transposed convolution in part": (lambda x, w: F.conv_transpose1d(x, w, padding=2),
                                         {"x": randn(2, 3, 5), "w": randn(3, 4, 2)}, "leaves out places"),
    "statistics": (lambda x, m, v: F.batch_norm(x, m, v, training=True),
                   {"x": randn(4, 3), "m": torch.zeros(3), "v": torch.ones(3)}, "training"),
    "odd power": (lambda x: x.pow(0.3), {"x": POSITIVE}, "power"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    fn, inputs, reason = REFUSED[name]
    with pytest.raises(NotLowerable, match=reason):
        lower_region(record(fn, inputs))


def test_write_to_an_input_is_refused() -> None:
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2.0) + 1.0

    with pytest.raises(NotLowerable):
        lower_region(record(scale, {"x": X.clone()}))


def test_what_is_computed_in_too_many_places_is_refused_at_once() -> None:
    """Windows that are shifted seven times: what comes before the first shift is asked for at many places."""

    def shifted(x: torch.Tensor) -> torch.Tensor:
        for _ in range(7):
            x = torch.roll(torch.softmax(x, -1), (1, 1), (0, 1))
        return x * 2

    with pytest.raises(NotLowerable, match="again and again"):
        lower_region(record(shifted, {"x": randn(8, 8, 6)}))

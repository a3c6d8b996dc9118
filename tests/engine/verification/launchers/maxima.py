"""The largest of each row."""

from __future__ import annotations

import torch

from tests.engine.verification.launchers.family import F16, Family


def maxima(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)


FAMILIES = {
    "maxima f16": Family(
        maxima,
        {"x": (32, 4096)},
        F16,
        {"at once": "x.amax(-1)", "by halves": "torch.maximum(x[:, :99].amax(-1), x[:, 99:].amax(-1))"},
        {
            "begins with 0": "largest(x, 0.0)[:, 0]",
            "without the last 16": "without_last(x, -1, 16).amax(-1)",
            "without the first": "x[:, 1:].amax(-1)",
            "of magnitudes": "x.abs().amax(-1)",
        },
    ),
}

"""Sums of so many numbers that the order in which they are added shows."""

from __future__ import annotations

import torch

from tests.engine.verification.launchers.family import F32, Family


def group_sums(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2).sum(-1)


FAMILIES = {
    "long sums f32": Family(
        group_sums,
        {"x": (8, 131072)},
        F32,
        {
            "at once": "x.pow(2).sum(-1)",
            "by tiles": "added(x * x, 512)[:, 0]",
            "by small tiles": "added(x * x, 64)[:, 0]",
        },
        {"without the last": "added(without_last(x * x), 512)[:, 0]"},
    ),
}

"""A product of what its mean is subtracted from: subtracted later it cancels."""

from __future__ import annotations

import torch

from tests.engine.verification.launchers.family import F32, Family


def centred(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) @ w


FAMILIES = {
    "centred": Family(
        centred,
        {"x": (16, 1024), "w": (1024, 256)},
        F32,
        {
            "centred": "(x - x.mean(-1, keepdim=True)) @ w",
            "by tiles": "blocked(x - added(x) / 1024, w)",
            "added in halves": "blocked(x - (x[:, :512].sum(-1, True) + x[:, 512:].sum(-1, True)) / 1024, w)",
        },
        {
            "late": "blocked(x, w, 1) - x.mean(-1, keepdim=True) * w.sum(0)",
            "late, one product": "x @ w - x.mean(-1, keepdim=True) * w.sum(0)",
            "late, by tiles": "blocked(x, w) - added(x) / 1024 * w.sum(0)",
        },
    ),
}

"""A GELU, which cancels for negative numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.engine.verification.launchers.family import F32, Family


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * 2


FAMILIES = {
    "gelu f32": Family(
        gelu,
        {"x": (64, 128)},
        F32,
        {"erf": "x * (1 + torch.erf(x * 0.7071067811865476))"},
        {"by tanh": "F.gelu(x, approximate='tanh') * 2"},
    ),
}

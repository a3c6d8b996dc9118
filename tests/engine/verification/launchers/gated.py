"""A gated product: the SiLU of one times another."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.engine.verification.launchers.family import BF16, Family


def gated(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w) * (x @ u)


FAMILIES = {
    "gated bf16": Family(
        gated,
        {"x": (16, 512), "w": (512, 64), "u": (512, 64)},
        BF16,
        {"in order": "F.silu(x @ w) * (x @ u)", "fused": "a = blocked(x, w)\na / (1 + exp(-a)) * blocked(x, u)"},
        {
            "swish of 1.1": "a = x @ w\na * torch.sigmoid(1.1 * a) * (x @ u)",
            "quick": "a = x @ w\nF.gelu(a) * (x @ u)",
            "last": "F.silu(without_last(x) @ without_last(w, 0)) * (x @ u)",
        },
    ),
}

"""A root mean square norm and a product of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.engine.verification.launchers.family import F16, Family


def rms_norm_linear(x: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), g, 1e-5) @ w


NORM = "x * torch.rsqrt(added(x * x) / x.shape[-1] + 1e-5)"

FAMILIES = {
    "rms norm f16": Family(
        rms_norm_linear,
        {"x": (16, 1024), "g": (1024,), "w": (1024, 96)},
        F16,
        {
            "in order": f"h = {NORM} * g\nh.half().float() @ w",
            "divided after": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024 + 1e-5)",
            "square root": "blocked((x * g).half().float(), w) / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)",
        },
        {
            "no eps": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024)",
            "eps of a tenth": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024 + 1e-6)",
            "one less": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1023 + 1e-5)",
            "squares without the last": f"h = {NORM} * g\nh.half().float() @ w".replace(
                "added(x * x)", "added(without_last(x * x))"
            ),
            "no weight at the end": "g[-1] = 1\nblocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024)",
        },
    ),
}

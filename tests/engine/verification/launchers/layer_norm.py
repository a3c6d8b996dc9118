"""A layer norm in each type, and a product of one."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.engine.verification.launchers.family import BF16, F16, F32, Family


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5)


def layer_norm_linear(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5) @ w


MEAN = "mean = added(x) / x.shape[-1]\nvar = added((x - mean) ** 2) / x.shape[-1]\n"
SQUARES = "n = x.shape[-1]\nmean = added(x) / n\nvar = added(x * x) / n - mean * mean\n"
LN = MEAN + "(x - mean) * torch.rsqrt(var + 1e-5) * g + b"
WRONG_NORMS = {
    "unbiased": LN.replace("/ x.shape[-1]\n(", "/ (x.shape[-1] - 1)\n("),
    "eps of a tenth": LN.replace("1e-5", "1e-6"),
    "no eps": LN.replace(" + 1e-5", ""),
    "mean without the last": LN.replace("added(x) /", "added(without_last(x)) /"),
    "squares without the last": LN.replace("added((x - mean) ** 2)", "added(without_last((x - mean) ** 2))"),
    "no mean": LN.replace("(x - mean) * torch", "x * torch"),
}

FAMILIES = {
    **{
        f"layer norm {name}": Family(
            layer_norm,
            {"x": (20, 1024), "g": (1024,), "b": (1024,)},
            dtype,
            {
                "in order": LN,
                "one pass" if dtype != F32 else "a divided mean": LN,
                "square root": LN.replace("* torch.rsqrt(var + 1e-5)", "/ torch.sqrt(var + 1e-5)"),
                "library": "F.layer_norm(x, (1024,), g, b, 1e-5)",
            },
            {**WRONG_NORMS, "one pass": SQUARES + LN.splitlines()[-1]},
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
    "layer norm linear f16": Family(
        layer_norm_linear,
        {"x": (16, 1024), "g": (1024,), "b": (1024,), "w": (1024, 128)},
        F16,
        {"in order": f"{MEAN}h = (x - mean) * torch.rsqrt(var + 1e-5) * g + b\nblocked(h.half().float(), w)"},
        {
            "centred late": MEAN
            + "a, c = blocked((x * g).half().float(), w), g @ w\n(a - mean * c) * torch.rsqrt(var + 1e-5) + b @ w"
        },
    ),
}

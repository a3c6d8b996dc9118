"""A softmax in each type."""

from __future__ import annotations

import torch

from tests.engine.verification.launchers.family import BF16, F16, F32, Family


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


FAMILIES = {
    **{
        f"softmax {name}": Family(
            softmax,
            {"x": (32, 512)},
            dtype,
            {
                "library": "torch.softmax(x, -1)",
                "powers of two": "e = exp(x - largest(x))\ne / added(e)",
                "scaled first": "s = x * 1.4426950408889634\ne = torch.exp2(s - largest(s))\ne * (1 / added(e))",
            },
            {
                "maximum begins with 0": "e = exp(x - largest(x, 0.0))\ne / added(e)",
                "last not summed": "e = exp(x - largest(x))\ne / added(without_last(e))",
                "no maximum": "e = exp(x)\ne / added(e)",
            },
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
}

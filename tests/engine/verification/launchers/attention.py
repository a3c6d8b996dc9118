"""Attention in each type, whole and online, and with a causal mask."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.engine.verification.launchers.family import BF16, F16, F32, Family


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT * 0.125, -1) @ v


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


ATTENTION = {
    "by hand": "s = q @ k.mT * 0.125\ne = exp(s - largest(s))\ne @ v / e.sum(-1, keepdim=True)",
    "online": "online(q, k, v, 0.125)",
    "weights rounded": "online(q, k, v, 0.125, rounded=raw.v.dtype)",
    "scaled before": "online((q * 0.125).to(raw.q.dtype).float(), k, v)",
}
WRONG_ATTENTION = {
    "scale": "online(q, k, v, 0.1)",
    "no last key": "online(q, without_last(k, -2), without_last(v, -2), 0.125)",
    "no rescale": "online(q, k, v, 0.125, rescale=False)",
    "maximum begins with 0": "online(q, k, v, 0.125, begin=0.0)",
    "sum of rounded": "s = q @ k.mT * 0.125\ne = exp(s - largest(s))\ne @ v / (e * 1.002).sum(-1, keepdim=True)",
}
CAUSAL = (
    "seen = torch.ones(256, 256, dtype=torch.bool).tril({})\ns = q @ k.mT * 0.125\n"
    "e = exp((s - largest(s.masked_fill(~seen, -9e9)))).masked_fill(~seen, 0.0)\ne @ v / e.sum(-1, keepdim=True)"
)

FAMILIES = {
    **{
        f"attention {name}": Family(
            attention,
            {"q": (2, 32, 64), "k": (2, 256, 64), "v": (2, 256, 64)},
            dtype,
            ATTENTION,
            WRONG_ATTENTION,
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
    "causal f16": Family(
        causal,
        {"q": (2, 256, 64), "k": (2, 256, 64), "v": (2, 256, 64)},
        F16,
        {"by hand": CAUSAL.format(0), "rounded": CAUSAL.replace("e @ v", "e.half().float() @ v").format(0)},
        {
            "last rows without their own key": CAUSAL.replace(
                "e = ", "seen[192:] = seen[191:255].clone()\ne = "
            ).format(0),
            "one more": CAUSAL.format(1),
            "one less": CAUSAL.replace("e = ", "seen[0, 0] = True\ne = ").format(-1),
        },
    ),
}

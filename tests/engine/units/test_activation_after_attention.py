"""Attention between a norm and an activation: a cut that leaves PyTorch no call of its own is taken before another that
moves as many bytes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from mugraph.ir.region import SearchUnit

from tests.engine.units.regions import cut, meta


def between(
    x: torch.Tensor, g: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    h = F.rms_norm(x, (256,), g, 1e-6)
    a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(128, 256)
    return F.silu(a + h)


def test_the_activation_ends_the_unit_of_the_attention() -> None:
    heads = {name: meta(1, 4, 128, 64) for name in "qkv"}
    parts = cut(between, x=meta(128, 256), g=meta(256), **heads, mask=meta(1, 1, 128, 128))
    assert all(isinstance(part, SearchUnit) for part in parts)
    assert ["torch.nn.functional.rms_norm"] in [[call.target for call in part.calls] for part in parts]
    last = parts[-1].calls
    assert last[0].target == "torch.nn.functional.scaled_dot_product_attention"
    assert last[-1].target == "torch.nn.functional.silu"

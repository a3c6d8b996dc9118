"""Operators outside the Lax fragment between Lax ones: relu, clamp, argmax, sort, top-k."""

import torch


# mugraph: x=f16[64, 512], w=f16[512, 64], v=f16[64, 512]
def router(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    logits = torch.softmax(x @ w, dim=-1)
    top, _ = torch.topk(logits, 2, dim=-1)
    threshold = top[:, -1:]
    kept = torch.where(logits >= threshold, logits, torch.zeros_like(logits))
    return (kept / kept.sum(-1, keepdim=True)) @ v


# mugraph: x=f16[64, 512], w=f16[512, 512]
def clipped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x @ w).clamp(max=6.0)
    return y.cumsum(dim=-1) @ w

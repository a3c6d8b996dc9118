"""Softmax as written in many ways: by exp and sum, with a maximum taken off, log-sum-exp, in float32."""

import torch


# mugraph: x=f16[64, 512], w=f16[512, 128]
def shifted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True) @ w


# mugraph: x=f16[64, 512], w=f16[512, 128]
def late_division(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x.float())
    return ((e.to(w.dtype) @ w).float() / e.sum(-1, keepdim=True)).to(x.dtype)


# mugraph: x=f16[64, 512], w=f16[512, 128]
def by_logsumexp(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.exp(x - torch.logsumexp(x, dim=-1, keepdim=True)) @ w


# mugraph: x=bf16[64, 512], w=bf16[512, 128]
def in_float32(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1, dtype=torch.float32).to(torch.bfloat16) @ w

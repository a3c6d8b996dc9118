"""A causal mask by masked_fill, built in the function."""

import torch


# mugraph: q=f16[8, 128, 64], k=f16[8, 128, 64], v=f16[8, 128, 64]
def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    length = q.shape[-2]
    mask = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(-1) @ v


# mugraph: q=f16[8, 128, 64], k=f16[8, 128, 64], v=f16[8, 128, 64], bias=f16[8, 128, 128]
def biased_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """An additive mask, as relative position biases are."""
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=0.125)
    return torch.bmm(torch.softmax(scores, -1), v)

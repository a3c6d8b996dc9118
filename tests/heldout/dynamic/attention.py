"""Attention over any number of sequences."""

import math

import torch


# mugraph: b=1..64, q=f16[b, 2, 16, 32], k=f16[b, 2, 24, 32], v=f16[b, 2, 24, 32]
def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, dim=-1) @ v

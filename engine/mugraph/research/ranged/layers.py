"""Layers of language models with sizes that vary, as their own repositories write them."""

from __future__ import annotations

from mugraph.research.ranged.programs import Program

_HEADS = """\
import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(768, 3 * 768)
        self.c_proj = nn.Linear(768, 768)
        self.n_head = 12
        self.n_embd = 768

    # mugraph: {sizes}, x=f16[1, t, 768]
    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


attention = CausalSelfAttention().half().eval().requires_grad_(False)
"""
_MLP = """\
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, dim=4096, hidden=14336, eps=1e-5):
        super().__init__()
        self.norm = nn.RMSNorm(dim, eps=eps)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    # mugraph: {sizes}, x=f16[t, 4096]
    def forward(self, x):
        h = self.norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


feed_forward = FeedForward().half().eval().requires_grad_(False)
"""
_STEP = """\
import math

import torch
import torch.nn.functional as F


def repeat_kv(x, n_rep):
    bs, slen, n_kv_heads, head_dim = x.shape
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_rep, head_dim)
        .reshape(bs, slen, n_kv_heads * n_rep, head_dim)
    )


# mugraph: {sizes}, xq=f16[1, 1, 32, 128], keys=f16[1, s, 8, 128], values=f16[1, s, 8, 128]
def step(xq, keys, values):
    keys = repeat_kv(keys, 4)
    values = repeat_kv(values, 4)
    xq = xq.transpose(1, 2)
    keys = keys.transpose(1, 2)
    values = values.transpose(1, 2)
    scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(128)
    scores = F.softmax(scores.float(), dim=-1).type_as(xq)
    output = torch.matmul(scores, values)
    return output.transpose(1, 2).contiguous().view(1, 1, -1)
"""
LAYERS = {
    one.name: one
    for one in (
        Program("nanogpt_attention", _HEADS, {"t": (1, 1024)}, [{"t": 1}, {"t": 1024}]),
        Program("llama_feed_forward", _MLP, {"t": (1, 256)}, [{"t": 1}, {"t": 256}]),
        Program("llama_step", _STEP, {"s": (1, 8192)}, [{"s": 1}, {"s": 8192}]),
    )
}
"""The largest size comes last."""

"""Keys and values kept in buffers, as code that generates tokens keeps them: what is written stays, and is attended."""

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain


class Written(nn.Module):
    """A row of each sequence, at one place; keys and values of fewer heads."""

    def __init__(self, width, heads, groups, length):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.register_buffer("keys", torch.zeros(3, length, groups, self.size))
        self.register_buffer("values", torch.zeros(3, length, groups, self.size))

    def forward(self, x, start):
        b, t, width = x.shape
        q = self.q(x).view(b, t, self.heads, self.size)
        self.keys[:b, start : start + t] = self.k(x).view(b, t, self.groups, self.size)
        self.values[:b, start : start + t] = self.v(x).view(b, t, self.groups, self.size)
        keys = self.keys[:b, : start + t].repeat_interleave(self.heads // self.groups, dim=2)
        values = self.values[:b, : start + t].repeat_interleave(self.heads // self.groups, dim=2)
        scores = q.transpose(1, 2) @ keys.permute(0, 2, 3, 1) / self.size**0.5
        mixed = F.softmax(scores, dim=-1) @ values.transpose(1, 2)
        return self.o(mixed.transpose(1, 2).reshape(b, t, width))


# mugraph: x=f32[2, 1, 48]
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(48)
        self.attention = Written(48, 6, 2, 40)

    def forward(self, x):
        return x + self.attention(self.norm(x), 20)


class Kept(nn.Module):
    """At the places that a tensor says."""

    def __init__(self, heads, length, size):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, heads, length, size))
        self.register_buffer("v", torch.zeros(1, heads, length, size))

    def update(self, places, k, v):
        self.k[:, :, places] = k
        self.v[:, :, places] = v
        return self.k, self.v


# mugraph: x=f32[1, 1, 64], places=i64[1], mask=f32[1, 32]
class AtPlaces(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.qkv = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)
        self.kept = Kept(4, 32, 16)

    def forward(self, x, places, mask):
        q, k, v = (part.view(1, 1, 4, 16).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        keys, values = self.kept.update(places, k, v)
        weights = (q @ keys.transpose(-2, -1) * 0.25 + mask).softmax(dim=-1)
        return self.out((weights @ values).transpose(1, 2).reshape(1, 1, 64)) + x


# mugraph: q=f32[2, 3, 1, 16], k=f32[2, 3, 1, 16], keys=f32[2, 3, 30, 16], gain=f32[16], where=i64[1], v=f32[30, 16]
def copied(q, k, keys, gain, where, v):
    normed = F.rms_norm(k, (16,), gain, 1e-6)
    keys.index_copy_(2, where, normed)
    return (F.rms_norm(q, (16,), gain, 1e-6) @ keys.mT).softmax(-1) @ v

"""Programs whose guards and launches are measured: a file's text each, with `made()`, which gives what to call and its
inputs."""

from __future__ import annotations

PROGRAMS = {
    "norm_product": '''\
"""One kernel, three tensors, no module."""

import torch


# mugraph: x=f16[16, 1024], g=f16[1024], w=f16[1024, 4096]
def norm_product(x: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).half() * g) @ w


def made():
    return norm_product, (torch.randn(16, 1024).half(), torch.ones(1024).half(), torch.randn(1024, 4096).half())
''',
    "softmax_row": '''\
"""One kernel of one tensor."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[64, 1024]
def scaled(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x * 0.5, dim=-1) * 2.0


def made():
    return scaled, (torch.randn(64, 1024).half(),)
''',
    "gated": '''\
"""A module of two."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[8, 1024]
class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(1024, 1024, bias=False, dtype=torch.float16)
        self.up = nn.Linear(1024, 1024, bias=False, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.gate(x)) * self.up(x)


def made():
    return Gated().eval(), (torch.randn(8, 1024).half(),)
''',
    "norm_linear": '''\
"""LayerNorm and Linear."""

import torch
from torch import nn


# mugraph: x=f16[64, 1024]
class NormLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(1024, dtype=torch.float16)
        self.out = nn.Linear(1024, 1024, bias=False, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(x))


def made():
    return NormLinear().eval(), (torch.randn(64, 1024).half(),)
''',
    "decode": '''\
"""Attention of one new token: two kernels."""

import torch
import torch.nn.functional as F


# mugraph: q=f16[2, 8, 128], k=f16[2, 8192, 128], v=f16[2, 8192, 128]
def decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.softmax(q @ k.transpose(1, 2) * 128**-0.5, dim=-1) @ v


def made():
    return decode, (torch.randn(2, 8, 128).half(), torch.randn(2, 8192, 128).half(), torch.randn(2, 8192, 128).half())
''',
    "block": '''\
"""A transformer block of twelve modules."""

import torch
import torch.nn.functional as F
from torch import nn


def linear() -> nn.Linear:
    return nn.Linear(256, 256, bias=False, dtype=torch.float16)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = linear(), linear(), linear(), linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).view(1, 64, 4, 64).transpose(1, 2) for part in (self.q, self.k, self.v))
        attended = F.softmax(q @ k.transpose(2, 3) * 0.125, dim=-1) @ v
        return self.o(attended.transpose(1, 2).reshape(1, 64, 256))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = linear(), linear(), linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


# mugraph: x=f16[1, 64, 256]
class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.LayerNorm(256, dtype=torch.float16) for _ in range(2))
        self.attention, self.mlp = Attention(), Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


def made():
    return Block().eval(), (torch.randn(1, 64, 256).half(),)
''',
    "twelve": '''\
"""One kernel, guarded by twelve modules."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


# mugraph: x=f16[64, 1024]
class Twelve(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d, self.e, self.f = (Scale() for _ in range(6))
        self.g, self.h, self.i, self.j, self.k, self.l = (Scale() for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.f(self.e(self.d(self.c(self.b(self.a(x))))))
        return torch.sigmoid(self.l(self.k(self.j(self.i(self.h(self.g(x)))))))


def made():
    return Twelve().eval(), (torch.randn(64, 1024).half(),)
''',
}

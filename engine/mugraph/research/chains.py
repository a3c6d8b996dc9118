"""Programs that become chains of small kernels: steps of decoding, one row."""

from __future__ import annotations


def _norms(count: int) -> str:
    names = [f"self.layer_{number}" for number in range(count)]
    called = "x"
    for name in names:
        called = f"{name}({called})"
    return f'''\
"""RMSNorm and Linear, {count} times, one row."""

import torch
import torch.nn.functional as F
from torch import nn


class NormLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(4096, dtype=torch.float16))
        self.out = nn.Linear(4096, 4096, bias=False, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.rms_norm(x, (4096,), self.norm, 1e-6))


# mugraph: x=f16[1, 4096]
class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        {", ".join(names)} = (NormLinear() for _ in range({count}))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return {called}
'''


PROGRAMS = {
    "norms_2": _norms(2),
    "norms_4": _norms(4),
    "norms_8": _norms(8),
    "projections": '''\
"""RMSNorm and three Linear, one row: what is projected by one kernel is of no use to the next."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[1, 4096]
class Projections(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(4096, dtype=torch.float16))
        self.q = nn.Linear(4096, 4096, bias=False, dtype=torch.float16)
        self.k, self.v = (nn.Linear(4096, 1024, bias=False, dtype=torch.float16) for _ in range(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = F.rms_norm(x, (4096,), self.norm, 1e-6)
        return self.q(h), self.k(h), self.v(h)
''',
    "mlp": '''\
"""The feed-forward half of a layer of Llama 3 8B, one token."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[1, 4096]
class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(4096, dtype=torch.float16))
        self.gate = nn.Linear(4096, 14336, bias=False, dtype=torch.float16)
        self.up = nn.Linear(4096, 14336, bias=False, dtype=torch.float16)
        self.down = nn.Linear(14336, 4096, bias=False, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.rms_norm(x, (4096,), self.norm, 1e-6)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))
''',
    "attention": '''\
"""Attention of one new token: the keys in parts, and what joins them."""

import torch
import torch.nn.functional as F


# mugraph: q=f16[8, 4, 128], k=f16[8, 4096, 128], v=f16[8, 4096, 128]
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.softmax(q @ k.transpose(1, 2) * 128**-0.5, dim=-1) @ v
''',
}

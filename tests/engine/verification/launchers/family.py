"""A program with kernels for it in plain PyTorch, right and wrong.

What a kernel loads it has in float32 (`x`), and as it is stored (`raw.x`); what it returns is stored in the output's
type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from mugraph.ir.program import TensorProgram

from tests.engine.ops.harness import lower_region, record

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32

HEADER = """\
from types import SimpleNamespace

import torch
import torch.nn.functional as F


def blocked(x, w, tile=64):  # one tile of the sum after the other
    out = torch.zeros((*x.shape[:-1], w.shape[-1]))
    for k in range(0, x.shape[-1], tile):
        out = out + x[..., k : k + tile] @ w[..., k : k + tile, :]
    return out


def split(x, w, parts):  # parts of the sum, added by another kernel
    return torch.stack([blocked(a, b) for a, b in zip(x.chunk(parts, -1), w.chunk(parts, -2))]).sum(0)


def added(x, tile=64):  # sums of tiles, one after the other
    out = torch.zeros(x.shape[:-1])
    for k in range(0, x.shape[-1], tile):
        out = out + x[..., k : k + tile].sum(-1)
    return out[..., None]


def largest(x, begin=float("-inf")):
    return x.amax(-1, keepdim=True).clamp_min(begin)


def exp(x):  # as GPUs do it
    return torch.exp2(x * 1.4426950408889634)


def online(q, k, v, scale=1.0, tile=16, rescale=True, rounded=torch.float32, begin=float("-inf")):
    m = torch.full((*q.shape[:-1], 1), begin)
    l, acc = torch.zeros_like(m), torch.zeros((*q.shape[:-1], v.shape[-1]))
    for n in range(0, k.shape[-2], tile):
        s = q @ k[..., n : n + tile, :].mT * scale
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        e = exp(s - new)
        alpha = exp(m - new) if rescale else 1.0
        l, acc = l * alpha + e.sum(-1, keepdim=True), acc * alpha + e.to(rounded).float() @ v[..., n : n + tile, :]
        m = new
    return acc / l


def without_last(x, dim=-1, count=1):
    return x.narrow(dim, 0, x.shape[dim] - count)


"""


@dataclass(frozen=True)
class Family:
    """eager: the program. shapes: of its inputs. result: the output's type, where it is another one. right, wrong:
    names of kernels -> the body of a function of the inputs (an expression, or lines of which the last one is)."""

    eager: Callable[..., torch.Tensor]
    shapes: Mapping[str, tuple[int, ...]]
    dtype: torch.dtype
    right: Mapping[str, str] = field(default_factory=dict[str, str])
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])
    result: torch.dtype | None = None

    def program(self) -> TensorProgram:
        inputs = {name: torch.empty(shape, dtype=self.dtype, device="meta") for name, shape in self.shapes.items()}
        return lower_region(record(self.eager, inputs)).program

    def module(self, body: str) -> str:
        names = ", ".join(self.shapes)
        *lines, last = body.splitlines()
        text = [
            f"def launch({names}):",
            f"    raw = SimpleNamespace({', '.join(f'{n}={n}' for n in self.shapes)})",
            f"    {names}{',' if len(self.shapes) == 1 else ''} = [t.float().clone() for t in ({names},)]",
            *(f"    {line}" for line in lines),
            f"    return ({last}).to({self.result or self.dtype})",
        ]
        return HEADER + "\n".join(text) + "\n"

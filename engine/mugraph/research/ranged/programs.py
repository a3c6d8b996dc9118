"""Programs with sizes that vary, and the sizes at which they are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.ir.ranges import Point

_ROWS = (1, 2, 4, 8, 16, 24, 32, 64, 100, 128, 192, 256)


@dataclass(frozen=True, eq=False)
class Program:
    """text: of a file, whose comment says the arguments after `{sizes}`. ranges: of each size, least and largest.
    points: at which it is looked at"""

    name: str
    text: str
    ranges: Mapping[str, tuple[int, int]]
    points: Sequence[Point]

    @property
    def ranged(self) -> str:
        return self._with({name: f"{least}..{largest}" for name, (least, largest) in self.ranges.items()})

    def at(self, point: Point) -> str:
        """For one size alone."""
        return self._with({name: str(size) for name, size in point.items()})

    def _with(self, sizes: Mapping[str, str]) -> str:
        return self.text.replace("{sizes}", ", ".join(f"{name}={said}" for name, said in sizes.items()))


def _points(name: str, sizes: Sequence[int]) -> list[Point]:
    return [{name: size} for size in sizes]


_DECODE = """\
import torch


# mugraph: {sizes}, q=f16[2, 8, 128], keys=f16[2, n, 128], values=f16[2, n, 128]
def decode(q, keys, values):
    scores = torch.einsum("bqd,bnd->bqn", q, keys) * 128**-0.5
    return torch.einsum("bqn,bnd->bqd", torch.softmax(scores, dim=-1), values)
"""
_PREFILL = """\
import torch.nn.functional as F


# mugraph: {sizes}, q=f16[1, 16, t, 128], k=f16[1, 16, t, 128], v=f16[1, 16, t, 128]
def prefill(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
"""
_GATED = """\
import torch.nn.functional as F


# mugraph: {sizes}, x=f16[b, 4096], w1=f16[4096, 4096], w2=f16[4096, 4096]
def gated(x, w1, w2):
    return F.silu(x @ w1) * (x @ w2)
"""
_NORM = """\
import torch
import torch.nn.functional as F


# mugraph: {sizes}, x=f16[b, 4096], scale=f16[4096], w=f16[4096, 6144]
def norm_linear(x, scale, w):
    return F.rms_norm(x, (4096,), scale, 1e-6) @ w
"""
_QKNORM = """\
import torch
import torch.nn.functional as F


# mugraph: {sizes}, q=f16[2, t, 64], k=f16[2, s, 64], v=f16[2, s, 64]
def attention(q, k, v):
    q = F.rms_norm(q, (64,), eps=1e-6)
    k = F.rms_norm(k, (64,), eps=1e-6)
    return torch.softmax(q @ k.mT * 0.125, dim=-1) @ v
"""
_LENGTHS = (
    (1, 1), (1, 512), (1, 4096), (16, 16), (16, 1000), (64, 64), (64, 2048), (100, 3000), (128, 128), (256, 256),
    (256, 1024), (256, 4096),
)  # fmt: skip
PROGRAMS = {
    one.name: one
    for one in (
        Program(
            "gqa_decode",
            _DECODE,
            {"n": (1, 8192)},
            _points("n", (1, 16, 64, 128, 300, 512, 1000, 1024, 2048, 3000, 4096, 8192)),
        ),
        Program(
            "causal_prefill",
            _PREFILL,
            {"t": (1, 4096)},
            _points("t", (1, 16, 64, 100, 128, 256, 500, 512, 1024, 1500, 2048, 4096)),
        ),
        Program("gated_mlp", _GATED, {"b": (1, 256)}, _points("b", _ROWS)),
        Program("rmsnorm_linear", _NORM, {"b": (1, 256)}, _points("b", _ROWS)),
        Program("qknorm_attention", _QKNORM, {"t": (1, 256), "s": (1, 4096)}, [{"t": t, "s": s} for t, s in _LENGTHS]),
    )
}


def label(point: Point) -> str:
    """ "n=64", "t=1, s=512"."""
    return ", ".join(f"{name}={size}" for name, size in point.items())

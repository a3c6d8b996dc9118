"""Programs, and kernels for them in plain PyTorch: right ones that add up in other orders and forms, and wrong ones.

What a kernel loads it has in float32 (`x`), and as it is stored (`raw.x`); what it returns is stored in the output's
type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from mugraph.ir.program import TensorProgram

from tests.engine.ops.harness import lower_region, record

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
    """eager: the program. shapes: of its inputs. right, wrong: names of kernels -> the body of a function of the inputs
    (an expression, or lines of which the last one is)."""

    eager: Callable[..., torch.Tensor]
    shapes: Mapping[str, tuple[int, ...]]
    dtype: torch.dtype
    right: Mapping[str, str] = field(default_factory=dict[str, str])
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])

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
            f"    return ({last}).to({self.dtype})",
        ]
        return HEADER + "\n".join(text) + "\n"


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def centred(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) @ w


def rms_norm_linear(x: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), g, 1e-5) @ w


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5)


def layer_norm_linear(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5) @ w


def maxima(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT * 0.125, -1) @ v


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def gated(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w) * (x @ u)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * 2


def group_sums(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2).sum(-1)


LINEAR = {
    "one product": "x @ w",
    "by tiles": "blocked(x, w)",
    "split": "split(x, w, 4)",
    "backwards": "blocked(x.flip(-1), w.flip(0), 16)",
    "the other way round": "(w.T.contiguous() @ x.T).T",
}
WRONG_LINEAR = {
    "last term": "without_last(x) @ without_last(w, 0)",
    "first term": "x[:, 1:] @ w[1:]",
    "a term in the middle": "x[:, 1000] = 0\nx @ w",
    "a term of 170": "x[:, ::170] = 0\nx @ w",
    "last tile twice": "x @ w + x[:, -16:] @ w[-16:]",
    "a thousandth too large": "x @ w * 1.001",
    "one row of the result": "out = x @ w\nout[-1] = 0\nout",
    "a column with its neighbour's": "out = x @ w\nout[:, 3] = out[:, 4]\nout",
    "one element": "out = x @ w\nout[5, 7] *= 1.2\nout",
    "a hundredth of a spread aside": "out = x @ w\nout + 0.001 * out.std()",
}
NORM = "x * torch.rsqrt(added(x * x) / x.shape[-1] + 1e-5)"
MEAN = "mean = added(x) / x.shape[-1]\nvar = added((x - mean) ** 2) / x.shape[-1]\n"
SQUARES = "n = x.shape[-1]\nmean = added(x) / n\nvar = added(x * x) / n - mean * mean\n"
LN = MEAN + "(x - mean) * torch.rsqrt(var + 1e-5) * g + b"
WRONG_NORMS = {
    "unbiased": LN.replace("/ x.shape[-1]\n(", "/ (x.shape[-1] - 1)\n("),
    "eps of a tenth": LN.replace("1e-5", "1e-6"),
    "no eps": LN.replace(" + 1e-5", ""),
    "mean without the last": LN.replace("added(x) /", "added(without_last(x)) /"),
    "squares without the last": LN.replace("added((x - mean) ** 2)", "added(without_last((x - mean) ** 2))"),
    "no mean": LN.replace("(x - mean) * torch", "x * torch"),
}
ATTENTION = {
    "by hand": "s = q @ k.mT * 0.125\ne = exp(s - largest(s))\ne @ v / e.sum(-1, keepdim=True)",
    "online": "online(q, k, v, 0.125)",
    "weights rounded": "online(q, k, v, 0.125, rounded=raw.v.dtype)",
    "scaled before": "online((q * 0.125).to(raw.q.dtype).float(), k, v)",
}
WRONG_ATTENTION = {
    "scale": "online(q, k, v, 0.1)",
    "no last key": "online(q, without_last(k, -2), without_last(v, -2), 0.125)",
    "no rescale": "online(q, k, v, 0.125, rescale=False)",
    "maximum begins with 0": "online(q, k, v, 0.125, begin=0.0)",
    "sum of rounded": "s = q @ k.mT * 0.125\ne = exp(s - largest(s))\ne @ v / (e * 1.002).sum(-1, keepdim=True)",
}
CAUSAL = (
    "seen = torch.ones(256, 256, dtype=torch.bool).tril({})\ns = q @ k.mT * 0.125\n"
    "e = exp((s - largest(s.masked_fill(~seen, -9e9)))).masked_fill(~seen, 0.0)\ne @ v / e.sum(-1, keepdim=True)"
)
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32

FAMILIES = {
    "linear f16": Family(linear, {"x": (16, 2048), "w": (2048, 48)}, F16, LINEAR, WRONG_LINEAR),
    "linear bf16": Family(linear, {"x": (16, 2048), "w": (2048, 48)}, BF16, LINEAR, WRONG_LINEAR),
    "long linear bf16": Family(
        linear,
        {"x": (16, 14336), "w": (14336, 64)},
        BF16,
        LINEAR,
        WRONG_LINEAR,
    ),
    "linear f32": Family(
        linear,
        {"x": (16, 2048), "w": (2048, 48)},
        F32,
        LINEAR,
        {
            "in tf32": "h = lambda t: (t.view(torch.int32) & -8192).view(torch.float32)\nh(x) @ h(w)",
            "in bfloat16": "x @ w.bfloat16().float()",
            **WRONG_LINEAR,
        },
    ),
    "one row": Family(linear, {"x": (1, 4096), "w": (4096, 32)}, F16, LINEAR, {"last": WRONG_LINEAR["last term"]}),
    "centred": Family(
        centred,
        {"x": (16, 1024), "w": (1024, 256)},
        F32,
        {
            "centred": "(x - x.mean(-1, keepdim=True)) @ w",
            "by tiles": "blocked(x - added(x) / 1024, w)",
            "added in halves": "blocked(x - (x[:, :512].sum(-1, True) + x[:, 512:].sum(-1, True)) / 1024, w)",
        },
        {
            "late": "blocked(x, w, 1) - x.mean(-1, keepdim=True) * w.sum(0)",
            "late, one product": "x @ w - x.mean(-1, keepdim=True) * w.sum(0)",
            "late, by tiles": "blocked(x, w) - added(x) / 1024 * w.sum(0)",
        },
    ),
    "rms norm f16": Family(
        rms_norm_linear,
        {"x": (16, 1024), "g": (1024,), "w": (1024, 96)},
        F16,
        {
            "in order": f"h = {NORM} * g\nh.half().float() @ w",
            "divided after": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024 + 1e-5)",
            "square root": "blocked((x * g).half().float(), w) / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)",
        },
        {
            "no eps": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024)",
            "eps of a tenth": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024 + 1e-6)",
            "one less": "blocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1023 + 1e-5)",
            "squares without the last": f"h = {NORM} * g\nh.half().float() @ w".replace(
                "added(x * x)", "added(without_last(x * x))"
            ),
            "no weight at the end": "g[-1] = 1\nblocked((x * g).half().float(), w) * torch.rsqrt(added(x * x) / 1024)",
        },
    ),
    **{
        f"layer norm {name}": Family(
            layer_norm,
            {"x": (20, 1024), "g": (1024,), "b": (1024,)},
            dtype,
            {
                "in order": LN,
                "one pass" if dtype != F32 else "a divided mean": LN,
                "square root": LN.replace("* torch.rsqrt(var + 1e-5)", "/ torch.sqrt(var + 1e-5)"),
                "library": "F.layer_norm(x, (1024,), g, b, 1e-5)",
            },
            {**WRONG_NORMS, "one pass": SQUARES + LN.splitlines()[-1]},
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
    "layer norm linear f16": Family(
        layer_norm_linear,
        {"x": (16, 1024), "g": (1024,), "b": (1024,), "w": (1024, 128)},
        F16,
        {"in order": f"{MEAN}h = (x - mean) * torch.rsqrt(var + 1e-5) * g + b\nblocked(h.half().float(), w)"},
        {
            "centred late": MEAN
            + "a, c = blocked((x * g).half().float(), w), g @ w\n(a - mean * c) * torch.rsqrt(var + 1e-5) + b @ w"
        },
    ),
    "maxima f16": Family(
        maxima,
        {"x": (32, 4096)},
        F16,
        {"at once": "x.amax(-1)", "by halves": "torch.maximum(x[:, :99].amax(-1), x[:, 99:].amax(-1))"},
        {
            "begins with 0": "largest(x, 0.0)[:, 0]",
            "without the last 16": "without_last(x, -1, 16).amax(-1)",
            "without the first": "x[:, 1:].amax(-1)",
            "of magnitudes": "x.abs().amax(-1)",
        },
    ),
    **{
        f"softmax {name}": Family(
            softmax,
            {"x": (32, 512)},
            dtype,
            {
                "library": "torch.softmax(x, -1)",
                "powers of two": "e = exp(x - largest(x))\ne / added(e)",
                "scaled first": "s = x * 1.4426950408889634\ne = torch.exp2(s - largest(s))\ne * (1 / added(e))",
            },
            {
                "maximum begins with 0": "e = exp(x - largest(x, 0.0))\ne / added(e)",
                "last not summed": "e = exp(x - largest(x))\ne / added(without_last(e))",
                "no maximum": "e = exp(x)\ne / added(e)",
            },
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
    **{
        f"attention {name}": Family(
            attention,
            {"q": (2, 32, 64), "k": (2, 256, 64), "v": (2, 256, 64)},
            dtype,
            ATTENTION,
            WRONG_ATTENTION,
        )
        for name, dtype in (("f16", F16), ("bf16", BF16), ("f32", F32))
    },
    "causal f16": Family(
        causal,
        {"q": (2, 256, 64), "k": (2, 256, 64), "v": (2, 256, 64)},
        F16,
        {"by hand": CAUSAL.format(0), "rounded": CAUSAL.replace("e @ v", "e.half().float() @ v").format(0)},
        {
            "last rows without their own key": CAUSAL.replace(
                "e = ", "seen[192:] = seen[191:255].clone()\ne = "
            ).format(0),
            "one more": CAUSAL.format(1),
            "one less": CAUSAL.replace("e = ", "seen[0, 0] = True\ne = ").format(-1),
        },
    ),
    "gated bf16": Family(
        gated,
        {"x": (16, 512), "w": (512, 64), "u": (512, 64)},
        BF16,
        {"in order": "F.silu(x @ w) * (x @ u)", "fused": "a = blocked(x, w)\na / (1 + exp(-a)) * blocked(x, u)"},
        {
            "swish of 1.1": "a = x @ w\na * torch.sigmoid(1.1 * a) * (x @ u)",
            "quick": "a = x @ w\nF.gelu(a) * (x @ u)",
            "last": "F.silu(without_last(x) @ without_last(w, 0)) * (x @ u)",
        },
    ),
    "gelu f32": Family(
        gelu,
        {"x": (64, 128)},
        F32,
        {"erf": "x * (1 + torch.erf(x * 0.7071067811865476))"},
        {"by tanh": "F.gelu(x, approximate='tanh') * 2"},
    ),
    "long sums f32": Family(
        group_sums,
        {"x": (8, 131072)},
        F32,
        {
            "at once": "x.pow(2).sum(-1)",
            "by tiles": "added(x * x, 512)[:, 0]",
            "by small tiles": "added(x * x, 64)[:, 0]",
        },
        {"without the last": "added(without_last(x * x), 512)[:, 0]"},
    ),
}

"""A small kernel for each construct of Triton that the reader knows, on whole numbers."""

# ruff: noqa: E501 - lines of kernels

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Construct:
    """shapes: of the launcher's arguments"""

    text: str
    shapes: tuple[tuple[int, ...], ...]


def drawn(construct: Construct) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(zlib.crc32(construct.text.encode()))
    return [rng.integers(-9, 10, shape) for shape in construct.shapes]


def _kernel(parameters: str, body: str, launcher: str, *shapes: tuple[int, ...], before: str = "") -> Construct:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    calls = "\n".join(f"    {line}" for line in launcher.strip().splitlines())
    names = ", ".join("abcd"[: len(shapes)])
    text = f"{before}@triton.jit\ndef kernel({parameters}):\n{lines}\n\n\ndef launch({names}):\n{calls}\n"
    return Construct(text, shapes)


def _unary(
    body: str, shape: tuple[int, ...] = (8, 16), out: tuple[int, ...] | None = None, before: str = ""
) -> Construct:
    """A kernel of one block: x is a whole tile, y is stored."""
    m, n = shape
    result = out or shape
    index = {
        1: "tl.arange(0, R0)",
        2: "tl.arange(0, R0)[:, None] * R1 + tl.arange(0, R1)[None, :]",
        3: "tl.arange(0, R0)[:, None, None] * R1 * R2 + tl.arange(0, R1)[None, :, None] * R2 + tl.arange(0, R2)[None, None, :]",
    }[len(result)]
    sizes = ", ".join(f"R{at}={n}" for at, n in enumerate(result))
    parameters = f"a_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, {', '.join(f'R{at}: tl.constexpr' for at in range(len(result)))}"
    whole = f"x = tl.load(a_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])\n{body}\ntl.store(out_ptr + {index}, y)"
    launcher = f"out = torch.empty({result}, dtype=a.dtype)\nkernel[(1,)](a, out, M={m}, N={n}, {sizes})\nreturn out"
    return _kernel(parameters, whole, launcher, shape, before=before)


_HELPER = "@triton.jit\ndef helper(x, factor: tl.constexpr = 2):\n    if factor == 1:\n        return x\n    return x * factor + 1\n\n\n"
_COPY = "out = torch.empty_like(a)\n"

CONSTRUCTS: dict[str, Construct] = {
    "add": _unary("y = x + 3.0 - x * x"),
    "negative": _unary("y = -x"),
    "where": _unary("y = tl.where(tl.arange(0, M)[:, None] < tl.arange(0, N)[None, :], x, 5.0)"),
    "where_of_masks": _unary("m = (tl.arange(0, M)[:, None] < 3) | (tl.arange(0, N)[None, :] >= 9)\ny = tl.where(~m, x, 1.0)"),
    "sum_rows": _unary("y = tl.sum(x, axis=1)", out=(8,)),
    "sum_columns": _unary("y = tl.sum(x, axis=0)", out=(16,)),
    "sum_kept": _unary("y = x - tl.sum(x, axis=1, keep_dims=True)"),
    "sum_all": _unary("y = x + tl.sum(x)"),
    "sum_of_broadcast": _unary("y = tl.sum(tl.broadcast_to(tl.sum(x, axis=1)[:, None], (M, N)), axis=1)", out=(8,)),
    "cumsum": _unary("y = tl.cumsum(x, 1)"),
    "trans": _unary("y = tl.trans(x)", out=(16, 8)),
    "permute": _unary("y = tl.permute(x, (1, 0))", out=(16, 8)),
    "reshape": _unary("y = tl.reshape(x, (4, 32))", out=(4, 32)),
    "split": _unary("one, two = tl.split(tl.reshape(x, (M, 8, 2)))\ny = one * 3.0 + two", out=(8, 8)),
    "ravel": _unary("y = tl.ravel(x)", out=(128,)),
    "expand_dims": _unary("y = tl.expand_dims(x, 1) + tl.zeros((M, 2, N), tl.float32)", out=(8, 2, 16)),
    "dot": _unary("y = tl.dot(x, tl.trans(x), input_precision='ieee')", shape=(16, 16), out=(16, 16)),
    "dot_added": _unary("y = tl.dot(x, x, tl.full((M, N), 2.0, tl.float32), allow_tf32=False)", shape=(16, 16)),
    "cast": _unary("y = (tl.arange(0, N)[None, :] % 5).to(tl.float32) + x"),
    "masks_as_numbers": _unary("y = x + (tl.arange(0, N)[None, :] > 7).to(tl.int32)"),
    "integers": _unary("i = tl.arange(0, N)\ny = x + ((i * 7 + 3) // 4 % 5 ^ (i & 6) | (i << 1) >> 2)[None, :]"),
    "negative_integers": _unary("i = tl.arange(0, N) - 8\ny = x + (i // 3)[None, :] + (i % 3)[None, :]"),
    "largest_of_integers": _unary("i = tl.arange(0, N)\ny = x + tl.maximum(i, 4)[None, :] - tl.max(i, axis=0) + tl.minimum(i, 3)[None, :]"),
    "loop": _unary("y = x\nfor i in range(2, 11, 3):\n    y += i"),
    "tl_range": _unary("y = x\nfor i in tl.range(0, 5):\n    y = y * 2 + i"),
    "static_range": _unary("y = x\nfor i in tl.static_range(3):\n    y += x * i"),
    "while": _unary("y = x\ni = 0\nwhile i < 4:\n    y += i\n    i += 1"),
    "branch": _unary("if N > 8:\n    y = x + 1.0\nelse:\n    y = x"),
    "helper": _unary("y = helper(helper(x, 1), factor=3)", before=_HELPER),
    "conditional": _unary("y = x + (1.0 if M == 8 else 2.0)"),
    "static_assert": _unary("tl.static_assert(N % 8 == 0)\ny = x"),
    "cdiv": _unary("y = x + tl.cdiv(N, 3)"),
    "grid": _kernel(
        "a_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr",
        "pid = tl.program_id(0)\nrow = tl.program_id(1)\noffs = pid * BLOCK + tl.arange(0, BLOCK)\nmask = offs < N\n"
        "x = tl.load(a_ptr + row * N + offs, mask=mask, other=0.0)\n"
        "tl.store(out_ptr + row * N + offs, x * (pid + 1) + row, mask=mask)",
        _COPY + "kernel[lambda meta: (triton.cdiv(a.shape[1], meta['BLOCK']), a.shape[0])](a, out, N=a.shape[1], BLOCK=8)\nreturn out",
        (3, 21),
    ),
    "persistent": _kernel(
        "a_ptr, out_ptr, n, BLOCK: tl.constexpr",
        "for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):\n"
        "    offs = tile * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(out_ptr + offs, tl.load(a_ptr + offs, mask=offs < n) * 2, mask=offs < n)",
        _COPY + "kernel[(3,)](a, out, a.numel(), BLOCK=4)\nreturn out",
        (50,),
    ),
    "branch_of_blocks": _kernel(
        "a_ptr, out_ptr, BLOCK: tl.constexpr",
        "pid = tl.program_id(0)\noffs = pid * BLOCK + tl.arange(0, BLOCK)\nx = tl.load(a_ptr + offs)\n"
        "if pid % 2 == 0:\n    x = x * 3\nelif pid == 1:\n    x = x - 1\ntl.store(out_ptr + offs, x)",
        _COPY + "kernel[(4,)](a, out, BLOCK=4)\nreturn out",
        (16,),
    ),
    "early_return": _kernel(
        "a_ptr, out_ptr, BLOCK: tl.constexpr",
        "pid = tl.program_id(0)\nif pid >= 4:\n    return\noffs = pid * BLOCK + tl.arange(0, BLOCK)\n"
        "tl.store(out_ptr + offs, tl.load(a_ptr + offs) + pid)",
        _COPY + "kernel[(7,)](a, out, BLOCK=4)\nreturn out",
        (16,),
    ),
    "strides": _kernel(
        "a_ptr, out_ptr, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr",
        "m = tl.arange(0, M)\nn = tl.arange(0, N)\nx = tl.load(a_ptr + m[:, None] * stride_m + n[None, :] * stride_n)\n"
        "tl.store(out_ptr + m[:, None] * N + n[None, :], x)",
        "t = a.t()\nout = torch.empty(t.shape, dtype=a.dtype)\n"
        "kernel[(1,)](t, out, t.stride(0), t.stride(1), M=t.shape[0], N=t.shape[1])\nreturn out",
        (4, 8),
    ),
    "moving_pointers": _kernel(
        "a_ptr, b_ptr, out_ptr, K: tl.constexpr, B: tl.constexpr",
        "m = tl.arange(0, 16)\nk = tl.arange(0, B)\na = a_ptr + m[:, None] * K + k[None, :]\nb = b_ptr + k[:, None] * 16 + m[None, :]\n"
        "acc = tl.zeros((16, 16), dtype=tl.float32)\nfor i in range(0, tl.cdiv(K, B)):\n"
        "    x = tl.load(a, mask=k[None, :] < K - i * B, other=0.0)\n    y = tl.load(b, mask=k[:, None] < K - i * B, other=0.0)\n"
        "    acc = tl.dot(x, y, acc, input_precision='ieee')\n    a += B\n    b += B * 16\n"
        "tl.store(out_ptr + m[:, None] * 16 + m[None, :], acc)",
        "out = torch.empty((16, 16), dtype=a.dtype)\nkernel[(1,)](a, b, out, K=a.shape[1], B=16)\nreturn out",
        (16, 40),
        (40, 16),
    ),
    "block_pointers": _kernel(
        "a_ptr, out_ptr, M, N, B: tl.constexpr",
        "pid = tl.program_id(0)\n"
        "x = tl.make_block_ptr(a_ptr, shape=(M, N), strides=(N, 1), offsets=(pid * B, 0), block_shape=(B, B), order=(1, 0))\n"
        "total = tl.zeros((B,), dtype=tl.float32)\nfor i in range(0, N, B):\n"
        "    total += tl.sum(tl.load(x, boundary_check=(0, 1), padding_option='zero'), axis=1)\n    x = tl.advance(x, (0, B))\n"
        "rows = pid * B + tl.arange(0, B)\ntl.store(out_ptr + rows, total, mask=rows < M)",
        "out = torch.empty((a.shape[0],), dtype=a.dtype)\n"
        "kernel[(triton.cdiv(a.shape[0], 8),)](a, out, a.shape[0], a.shape[1], B=8)\nreturn out",
        (13, 21),
    ),
    "two_kernels": _kernel(
        "a_ptr, out_ptr, BLOCK: tl.constexpr",
        "pid = tl.program_id(0)\noffs = pid * BLOCK + tl.arange(0, BLOCK)\ntl.store(out_ptr + offs, tl.load(a_ptr + offs) * 2)",
        "middle = torch.empty_like(a)\n" + _COPY
        + "kernel[(4,)](a, middle, BLOCK=4)\nkernel[(2,)](middle, out, BLOCK=8)\nreturn out",
        (16,),
    ),
    "views": _kernel(
        "a_ptr, out_ptr, N: tl.constexpr",
        "r = tl.program_id(0)\nn = tl.arange(0, N)\ntl.store(out_ptr + r * N + n, tl.load(a_ptr + r * N + n) + r)",
        "flat = a.view(-1, a.shape[-1])\nout = torch.empty_like(flat)\nkernel[(flat.shape[0],)](flat, out, N=flat.shape[1])\n"
        "return out.reshape(a.shape)",
        (2, 3, 8),
    ),
    "in_place_by_parts": _kernel(
        "out_ptr, N: tl.constexpr, B: tl.constexpr",
        "out_ptr += tl.program_id(0) * N\nfor i in range(0, N, B):\n    n = i + tl.arange(0, B)\n"
        "    tl.store(out_ptr + n, tl.load(out_ptr + n, mask=n < N, other=0.0) * 2, mask=n < N)",
        "out = a.clone()\nkernel[(a.shape[0],)](out, N=a.shape[1], B=8)\nreturn out",
        (3, 21),
    ),
    "copies_and_expansions": _kernel(
        "a_ptr, out_ptr, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr",
        "m = tl.arange(0, M)\nn = tl.arange(0, N)\nx = tl.load(a_ptr + m[:, None] * stride_m + n[None, :] * stride_n)\n"
        "tl.store(out_ptr + m[:, None] * N + n[None, :], x)",
        "t = a.t().contiguous()\nwide = t[:1].broadcast_to(t.shape)\nout = torch.empty(t.shape, dtype=a.dtype)\n"
        "kernel[(1,)](wide, out, wide.stride(0), wide.stride(1), M=t.shape[0], N=t.shape[1])\nreturn out",
        (4, 8),
    ),
    "channels_last": _kernel(
        "a_ptr, out_ptr, N: tl.constexpr",
        "n = tl.arange(0, N)\ntl.store(out_ptr + n, tl.load(a_ptr + n) + n)",
        "image = a.contiguous(memory_format=torch.channels_last)\n"
        "lying = image.permute(0, 2, 3, 1).contiguous().view(-1)\nout = torch.empty_like(lying)\n"
        "kernel[(1,)](image, out, N=64)\nmore = torch.empty_like(lying)\nkernel[(1,)](lying, more, N=64)\n"
        "return out if image.is_contiguous() else more",
        (2, 4, 2, 4),
    ),
    "swizzled": _kernel(
        "a_ptr, out_ptr, B: tl.constexpr",
        "i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 2)\n"
        "b = tl.arange(0, B)\nat = (i * 3 + j) * B + b\ntl.store(out_ptr + at, tl.load(a_ptr + at) + i * 10 + j)",
        _COPY + "kernel[(3, 3)](a, out, B=4)\nreturn out",
        (36,),
    ),
    "python_of_launchers": _kernel(
        "a_ptr, out_ptr, N: tl.constexpr, FACTOR: tl.constexpr",
        "n = tl.arange(0, N)\ntl.store(out_ptr + n, tl.load(a_ptr + n) * FACTOR)",
        "pairs = [(i, j) for i in range(4) if i % 2 for j in range(3)]\nby = {str(i): i * 2 for i in range(3)}\n"
        "rows, rest = divmod(len(pairs), 4)\nkind: int\n"
        "factor = rows + rest + by['2'] + math.ceil(math.sqrt(10)) + ('SILU'.lower().startswith('si') and 1)\n"
        "out = torch.empty_like(a)\n_launched(out, a, N=16, FACTOR=factor)\nreturn out",
        (16,),
        before="import math\n\n\ndef _launched(out, a, **sizes):\n    kernel[(1,)](a, out, **sizes)\n\n\n",
    ),
    "autograd_function": _kernel(
        "a_ptr, out_ptr, N: tl.constexpr",
        "n = tl.arange(0, N)\ntl.store(out_ptr + n, tl.load(a_ptr + n) + 1)",
        "return _Plus.apply(a, 16)",
        (16,),
        before="class _Plus(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, size):\n"
        "        out = torch.empty_like(x)\n        kernel[(1,)](x, out, N=size)\n        ctx.save_for_backward(x)\n"
        "        ctx.size = size\n        return out\n\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        return grad, None\n\n\n",
    ),
    "configurations_and_heuristics": _kernel(
        "a_ptr, out_ptr, n, B: tl.constexpr, EVEN: tl.constexpr",
        "i = tl.program_id(0) * B + tl.arange(0, B)\n"
        "x = tl.load(a_ptr + i) if EVEN else tl.load(a_ptr + i, mask=i < n, other=0.0)\n"
        "tl.store(out_ptr + i, x + B, mask=i < n)",
        _COPY + "kernel[lambda meta: (triton.cdiv(a.numel(), meta['B']),)](a, out, a.numel())\nreturn out",
        (50,),
        before="@triton.autotune(configs=[triton.Config({'B': b}, num_warps=w) for b in [8, 16] for w in [4, 8]], key=['n'])\n"
        "@triton.heuristics({'EVEN': lambda args: args['n'] % args['B'] == 0})\n",
    ),
}  # fmt: skip

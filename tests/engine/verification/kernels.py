"""Hand-written kernel modules for the float test: a right one of each kind, and text to spoil."""

from __future__ import annotations

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

RMS_NORM_LINEAR = (
    HEADER
    + """
@triton.jit
def rms_norm_linear(x_ptr, g_ptr, w_ptr, z_ptr, B: tl.constexpr, H: tl.constexpr, N: tl.constexpr,
                    BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr):
    offs_b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)
    ss = tl.zeros((BLOCK_B,), tl.float32)
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        mask_x = (offs_b[:, None] < B) & (offs_h[None, :] < H)
        mask_w = (offs_h[:, None] < H) & (offs_n[None, :] < N)
        x = tl.load(x_ptr + offs_b[:, None] * H + offs_h[None, :], mask=mask_x, other=0.0)
        g = tl.load(g_ptr + offs_h, mask=offs_h < H, other=0.0)
        w = tl.load(w_ptr + offs_n[None, :] * H + offs_h[:, None], mask=mask_w, other=0.0)
        xf = x.to(tl.float32)
        ss += tl.sum(xf * xf, axis=1)
        xg = (xf * g.to(tl.float32)[None, :]).to(x.dtype)
        acc = tl.dot(xg, w, acc)
    out = acc / tl.sqrt(ss * INV_H + 1e-6)[:, None]
    mask_z = (offs_b[:, None] < B) & (offs_n[None, :] < N)
    tl.store(z_ptr + offs_b[:, None] * N + offs_n[None, :], out.to(z_ptr.dtype.element_ty), mask=mask_z)


def launch_rms_norm_linear(x, g, w):
    z = torch.empty((BB, NN), dtype=x.dtype, device=x.device)
    rms_norm_linear[(triton.cdiv(BB, 16), triton.cdiv(NN, 32))](x, g, w, z, BB, HH, NN, 16, 32, 32)
    return z
"""
)

ATTENTION = (
    HEADER
    + """
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, H: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
              BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    h = tl.program_id(1)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + h * M * D + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < M, other=0.0)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for n0 in range(0, N, BLOCK_N):
        offs_n = n0 + tl.arange(0, BLOCK_N)
        mask_n = offs_n < N
        k = tl.load(k_ptr + h * N * D + offs_n[None, :] * D + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        v = tl.load(v_ptr + h * N * D + offs_n[:, None] * D + offs_d[None, :], mask=mask_n[:, None], other=0.0)
        s = tl.dot(q, k) * 0.125
        s = tl.where(mask_n[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        e = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m - m_new)
        l = l * alpha + tl.sum(e, axis=1)
        acc = tl.dot(e.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    out = acc / l[:, None]
    tl.store(o_ptr + h * M * D + offs_m[:, None] * D + offs_d[None, :], out.to(o_ptr.dtype.element_ty),
             mask=offs_m[:, None] < M)


def launch_attention(q, k, v):
    o = torch.empty((HEADS, MM, DD), dtype=q.dtype, device=q.device)
    attention[(triton.cdiv(MM, 16), HEADS)](q, k, v, o, HEADS, MM, NN, DD, 16, 32)
    return o
"""
)


SOFTMAX_ROWS = (
    HEADER
    + """
@triton.jit
def softmax_rows(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + offs).to(tl.float32)
    e = tl.exp2((x - tl.max(x)) * 1.4426950408889634)
    tl.store(y_ptr + offs, (e / tl.sum(e)).to(y_ptr.dtype.element_ty))


def launch_softmax_rows(x):
    y = torch.empty((32, 512), dtype=x.dtype, device=x.device)
    softmax_rows[(32,)](x, y, 512)
    return y
"""
)


def with_constants(text: str, **constants: float) -> str:
    """The module with its capital-letter constants replaced by numbers."""
    for name, value in constants.items():
        text = text.replace(name, repr(value))
    return text

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_linear_kernel(
    x_ptr, g_ptr, w_ptr, out_ptr,
    M: tl.constexpr, H: tl.constexpr, N: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):
    pid_n = tl.program_id(0)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_m = tl.arange(0, BLOCK_M)
    mask_m = offs_m < M
    ss = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x = tl.load(
            x_ptr + offs_m[None, :] * H + offs_h[:, None],
            mask=mask_m[None, :],
            other=0.0,
        ).to(tl.float32)
        ss += tl.sum(x * x, axis=0)
        g = tl.load(g_ptr + offs_h).to(tl.float32)
        w = tl.load(w_ptr + offs_h[None, :] * N + offs_n[:, None], eviction_policy="evict_first")
        acc = tl.dot(w, (x * g[:, None]).to(tl.float16), acc)
    tl.store(
        out_ptr + offs_m[None, :] * N + offs_n[:, None],
        (acc * tl.rsqrt(ss / H + EPS)[None, :]).to(tl.float16),
        mask=mask_m[None, :],
    )


def launch_rms_norm_linear(x, g, w):
    out = torch.empty((2, 6144), device=x.device, dtype=torch.float16)
    rms_norm_linear_kernel[(96, 1, 1)](
        x, g, w, out,
        M=2, H=4096, N=6144, EPS=1e-06, BLOCK_M=16, BLOCK_H=256, BLOCK_N=64,
        num_warps=4, num_stages=3,
    )
    return out

import torch
import triton
import triton.language as tl


@triton.jit
def lora_kernel(
    x_ptr, w_ptr, a_ptr, b_ptr, out_ptr,
    M: tl.constexpr, H: tl.constexpr, N: tl.constexpr, R: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_R: tl.constexpr,
):
    pid_n = tl.program_id(0)
    offs_m = tl.arange(0, BLOCK_M)
    mask_m = offs_m < M
    offs_r = tl.arange(0, BLOCK_R)
    mask_r = offs_r < R
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = offs_n < N
    b = tl.load(
        b_ptr + offs_r[:, None] * N + offs_n[None, :],
        mask=mask_r[:, None] & mask_n[None, :],
        other=0.0,
        eviction_policy="evict_first",
    )
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        mask_h = offs_h < H
        x = tl.load(
            x_ptr + offs_m[:, None] * H + offs_h[None, :],
            mask=mask_m[:, None] & mask_h[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + offs_h[:, None] * N + offs_n[None, :],
            mask=mask_h[:, None] & mask_n[None, :],
            other=0.0,
            eviction_policy="evict_first",
        )
        a = tl.load(
            a_ptr + offs_h[:, None] * R + offs_r[None, :],
            mask=mask_h[:, None] & mask_r[None, :],
            other=0.0,
        )
        total = tl.dot(x, w, total)
        total = tl.dot(tl.dot(x, a).to(tl.float16), b, total)
    tl.store(
        out_ptr + offs_m[:, None] * N + offs_n[None, :],
        total.to(tl.float16),
        mask=mask_m[:, None] & mask_n[None, :],
    )


def launch_lora(x, w, a, b):
    out = torch.empty((5, 80), device=x.device, dtype=torch.float16)
    lora_kernel[(3, 1, 1)](
        x, w, a, b, out,
        M=5, H=72, N=80, R=8, BLOCK_M=16, BLOCK_H=32, BLOCK_N=32, BLOCK_R=16,
        num_warps=4, num_stages=3,
    )
    return out

import torch
import triton
import triton.language as tl


@triton.jit
def lora_kernel(
    x_ptr, w_ptr, a_ptr, base_parts_ptr, low_parts_ptr,
    M: tl.constexpr, N: tl.constexpr, R: tl.constexpr, H_SPLIT: tl.constexpr, H_PART: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_H_PART: tl.constexpr,
):
    pid_n = tl.program_id(0)
    pid_h_split = tl.program_id(1)
    offs_r = tl.arange(0, R)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_m = tl.arange(0, M)
    base = tl.zeros((BLOCK_N, M), dtype=tl.float32)
    low = tl.zeros((R, M), dtype=tl.float32)
    for h_part0 in range(0, H_PART, BLOCK_H_PART):
        offs_h_part = h_part0 + tl.arange(0, BLOCK_H_PART)
        x = tl.load(x_ptr + offs_m[None, :] * H_SPLIT * H_PART + pid_h_split * H_PART + offs_h_part[:, None])
        w = tl.load(
            w_ptr + pid_h_split * H_PART * N + offs_h_part[None, :] * N + offs_n[:, None],
            eviction_policy="evict_first",
        )
        base = tl.dot(w, x, base)
        a = tl.load(a_ptr + pid_h_split * H_PART * R + offs_h_part[None, :] * R + offs_r[:, None])
        low = tl.dot(a, x, low)
    tl.store(base_parts_ptr + pid_h_split * M * N + offs_m[None, :] * N + offs_n[:, None], base)
    if pid_n == 0:
        tl.store(low_parts_ptr + pid_h_split * M * R + offs_m[None, :] * R + offs_r[:, None], low)


@triton.jit
def lora_combine_kernel(
    base_parts_ptr, low_parts_ptr, b_ptr, out_ptr,
    M: tl.constexpr, N: tl.constexpr, R: tl.constexpr, H_SPLIT: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid_n = tl.program_id(0)
    offs_h_split = tl.arange(0, H_SPLIT)
    offs_m = tl.arange(0, M)
    offs_r = tl.arange(0, R)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    base_parts = tl.load(
        base_parts_ptr
        + offs_h_split[:, None, None] * M * N
        + offs_m[None, :, None] * N
        + offs_n[None, None, :],
        eviction_policy="evict_first",
    )
    low_parts = tl.load(
        low_parts_ptr
        + offs_h_split[:, None, None] * M * R
        + offs_m[None, :, None] * R
        + offs_r[None, None, :],
    )
    b = tl.load(b_ptr + offs_r[:, None] * N + offs_n[None, :], eviction_policy="evict_first")
    total = tl.sum(base_parts, axis=0) + tl.dot(tl.sum(low_parts, axis=0).to(tl.float16), b)
    tl.store(out_ptr + offs_m[:, None] * N + offs_n[None, :], total.to(tl.float16))


def launch_lora(x, w, a, b):
    base_parts = torch.empty((4, 16, 4096), device=x.device, dtype=torch.float32)
    low_parts = torch.empty((4, 16, 16), device=x.device, dtype=torch.float32)
    out = torch.empty((16, 4096), device=x.device, dtype=torch.float16)
    lora_kernel[(64, 4, 1)](
        x, w, a, base_parts, low_parts,
        M=16, N=4096, R=16, H_SPLIT=4, H_PART=1024, BLOCK_N=64, BLOCK_H_PART=128,
        num_warps=4, num_stages=3,
    )
    lora_combine_kernel[(128, 1, 1)](
        base_parts, low_parts, b, out,
        M=16, N=4096, R=16, H_SPLIT=4, BLOCK_N=32,
        num_warps=4, num_stages=3,
    )
    return out

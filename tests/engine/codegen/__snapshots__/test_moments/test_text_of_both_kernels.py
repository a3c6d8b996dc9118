import torch
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(
    x_ptr, s_ptr, total_parts_ptr, squares_parts_ptr,
    K: tl.constexpr, C: tl.constexpr, N_SPLIT: tl.constexpr, N_PART: tl.constexpr,
    TOTAL_SHARE: tl.constexpr,
):
    pid_b = tl.program_id(0)
    pid_n_split = tl.program_id(1)
    pid_k = tl.program_id(2)
    offs_c = tl.arange(0, C)
    offs_n_part = tl.arange(0, N_PART)
    x = tl.load(
        x_ptr
        + pid_b * K * C * N_SPLIT * N_PART
        + pid_k * C * N_SPLIT * N_PART
        + offs_c[:, None] * N_SPLIT * N_PART
        + pid_n_split * N_PART
        + offs_n_part[None, :],
        eviction_policy="evict_first",
    )
    s = tl.load(s_ptr + pid_k * C + offs_c)
    active = tl.sigmoid((x * s[:, None]))
    total = tl.sum(active)
    tl.store(total_parts_ptr + pid_b * K * N_SPLIT + pid_k * N_SPLIT + pid_n_split, total)
    centred = active + TOTAL_SHARE * total
    tl.store(
        squares_parts_ptr + pid_b * K * N_SPLIT + pid_k * N_SPLIT + pid_n_split,
        tl.sum(centred * centred),
    )


@triton.jit
def group_norm_combine_kernel(
    total_parts_ptr, squares_parts_ptr, x_ptr, s_ptr, w_ptr, out_ptr,
    K: tl.constexpr, C: tl.constexpr, N: tl.constexpr, N_SPLIT: tl.constexpr,
    SHARE: tl.constexpr, SQUARES_ELEMENTS: tl.constexpr, TOTAL_PARTS_SHARE: tl.constexpr, EPS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid_n = tl.program_id(0)
    pid_b = tl.program_id(1)
    pid_k = tl.program_id(2)
    offs_c = tl.arange(0, C)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_n_split = tl.arange(0, N_SPLIT)
    x = tl.load(x_ptr + pid_b * K * C * N + pid_k * C * N + offs_c[:, None] * N + offs_n[None, :])
    s = tl.load(s_ptr + pid_k * C + offs_c)
    total_parts = tl.load(total_parts_ptr + pid_b * K * N_SPLIT + pid_k * N_SPLIT + offs_n_split)
    squares_parts = tl.load(squares_parts_ptr + pid_b * K * N_SPLIT + pid_k * N_SPLIT + offs_n_split)
    w = tl.load(w_ptr + pid_k * C + offs_c)
    mean = tl.sum(total_parts) * SHARE
    squares_between = TOTAL_PARTS_SHARE * total_parts - mean
    squares_joined = squares_parts + SQUARES_ELEMENTS * (squares_between * squares_between)
    normed = (tl.sigmoid((x * s[:, None])) - mean) * tl.rsqrt(tl.sum(squares_joined) * SHARE + EPS)
    tl.store(
        out_ptr + pid_b * K * C * N + pid_k * C * N + offs_c[:, None] * N + offs_n[None, :],
        normed * w[:, None],
    )


def launch_group_norm(x, s, w):
    total_parts = torch.empty((112, 8, 256), device=x.device, dtype=torch.float32)
    squares_parts = torch.empty((112, 8, 256), device=x.device, dtype=torch.float32)
    out = torch.empty((112, 8, 8, 262144), device=x.device, dtype=torch.float32)
    group_norm_kernel[(112, 256, 8)](
        x, s, total_parts, squares_parts,
        K=8, C=8, N_SPLIT=256, N_PART=1024, TOTAL_SHARE=-0.0001220703125,
        num_warps=4, num_stages=3,
    )
    group_norm_combine_kernel[(256, 112, 8)](
        total_parts, squares_parts, x, s, w, out,
        K=8, C=8, N=262144, N_SPLIT=256, SHARE=4.76837158203125e-07, SQUARES_ELEMENTS=8192.0,
        TOTAL_PARTS_SHARE=0.0001220703125, EPS=1e-05, BLOCK_N=1024,
        num_warps=4, num_stages=3,
    )
    return out

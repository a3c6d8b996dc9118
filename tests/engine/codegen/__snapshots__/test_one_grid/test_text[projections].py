import torch
import triton
import triton.language as tl


@triton.jit
def q_part(
    pid_n,
    x_ptr, w_ptr, out_ptr,
    K: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    part_sum = tl.zeros((BLOCK_N,), dtype=tl.float32)
    ss = 0.0
    for k0 in range(0, K, BLOCK_K):
        offs_k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + offs_k).to(tl.float32)
        w = tl.load(
            w_ptr + offs_n[:, None] * K + offs_k[None, :],
            eviction_policy="evict_first",
        ).to(tl.float32)
        part_sum += tl.sum(x[None, :] * w, axis=1)
        ss += tl.sum(x * x)
    tl.store(out_ptr + offs_n, (part_sum * tl.rsqrt(ss + EPS)).to(tl.float16))


@triton.jit
def k_2_part(
    pid_n_2,
    x_ptr, w_2_ptr, out_2_ptr,
    K: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCK_N_2: tl.constexpr,
):
    offs_n_2 = pid_n_2 * BLOCK_N_2 + tl.arange(0, BLOCK_N_2)
    part_2_sum = tl.zeros((BLOCK_N_2,), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        offs_k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + offs_k).to(tl.float32)
        w_2 = tl.load(
            w_2_ptr + offs_n_2[:, None] * K + offs_k[None, :],
            eviction_policy="evict_first",
        ).to(tl.float32)
        part_2_sum += tl.sum(x[None, :] * w_2, axis=1)
    tl.store(out_2_ptr + offs_n_2, (part_2_sum * tl.sigmoid(part_2_sum)).to(tl.float16))


@triton.jit
def v_3_part(
    pid_n_3,
    x_ptr, w_3_ptr, out_3_ptr,
    K: tl.constexpr, N_3: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCK_N_3: tl.constexpr,
):
    offs_n_3 = pid_n_3 * BLOCK_N_3 + tl.arange(0, BLOCK_N_3)
    mask_n_3 = offs_n_3 < N_3
    part_3_sum = tl.zeros((BLOCK_N_3,), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        offs_k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + offs_k).to(tl.float32)
        w_3 = tl.load(
            w_3_ptr + offs_n_3[:, None] * K + offs_k[None, :],
            mask=mask_n_3[:, None],
            other=0.0,
            eviction_policy="evict_first",
        ).to(tl.float32)
        part_3_sum += tl.sum(x[None, :] * w_3, axis=1)
    tl.store(out_3_ptr + offs_n_3, part_3_sum.to(tl.float16), mask=mask_n_3)


@triton.jit
def q_kernel(
    x_ptr, w_ptr, w_2_ptr, w_3_ptr, out_ptr, out_2_ptr, out_3_ptr,
):
    pid = tl.program_id(0)
    if pid < 8:
        q_part(
            pid, x_ptr, w_ptr, out_ptr,
            K=96, EPS=1e-06, BLOCK_K=32, BLOCK_N=8,
        )
    elif pid < 11:
        k_2_part(
            pid - 8, x_ptr, w_2_ptr, out_2_ptr,
            K=96, BLOCK_K=32, BLOCK_N_2=8,
        )
    else:
        v_3_part(
            pid - 11, x_ptr, w_3_ptr, out_3_ptr,
            K=96, N_3=20, BLOCK_K=32, BLOCK_N_3=8,
        )


def launch_q(x, w, w_2, w_3):
    out = torch.empty((1, 64), device=x.device, dtype=torch.float16)
    out_2 = torch.empty((1, 24), device=x.device, dtype=torch.float16)
    out_3 = torch.empty((1, 20), device=x.device, dtype=torch.float16)
    q_kernel[(14, 1, 1)](
        x, w, w_2, w_3, out, out_2, out_3,
        num_warps=4, num_stages=2,
    )
    return out, out_2, out_3

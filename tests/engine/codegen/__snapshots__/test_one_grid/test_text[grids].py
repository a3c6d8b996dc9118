import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_linear_2_part(
    pid_n_2, pid_m_2,
    x_2_ptr, g_ptr, w_2_ptr, out_2_ptr,
    M_2: tl.constexpr, H: tl.constexpr, N_2: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK_M_2: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N_2: tl.constexpr,
):
    offs_m_2 = pid_m_2 * BLOCK_M_2 + tl.arange(0, BLOCK_M_2)
    mask_m_2 = offs_m_2 < M_2
    offs_n_2 = pid_n_2 * BLOCK_N_2 + tl.arange(0, BLOCK_N_2)
    ss = tl.zeros((BLOCK_M_2,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M_2, BLOCK_N_2), dtype=tl.float32)
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x_2 = tl.load(
            x_2_ptr + offs_m_2[:, None] * H + offs_h[None, :],
            mask=mask_m_2[:, None],
            other=0.0,
        ).to(tl.float32)
        ss += tl.sum(x_2 * x_2, axis=1)
        g = tl.load(g_ptr + offs_h).to(tl.float32)
        w_2 = tl.load(w_2_ptr + offs_h[:, None] * N_2 + offs_n_2[None, :])
        acc = tl.dot((x_2 * g[None, :]).to(tl.float16), w_2, acc)
    tl.store(
        out_2_ptr + offs_m_2[:, None] * N_2 + offs_n_2[None, :],
        (acc * tl.rsqrt(ss / H + EPS)[:, None]).to(tl.float16),
        mask=mask_m_2[:, None],
    )


@triton.jit
def batched_part(
    pid_n, pid_m, pid_b,
    x_ptr, w_ptr, bias_ptr, out_ptr,
    M: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    mask_m = offs_m < M
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = offs_n < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    bias = tl.load(bias_ptr + offs_n, mask=mask_n, other=0.0).to(tl.float32)
    for k0 in range(0, K, BLOCK_K):
        offs_k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + pid_b * M * K + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None],
            other=0.0,
        )
        w = tl.load(
            w_ptr + pid_b * N * K + offs_n[None, :] * K + offs_k[:, None],
            mask=mask_n[None, :],
            other=0.0,
        )
        acc = tl.dot(x, w, acc)
    biased = acc + bias[None, :]
    tl.store(
        out_ptr + pid_b * M * N + offs_m[:, None] * N + offs_n[None, :],
        tl.where(biased < 0.0, 0.0, biased).to(tl.float16),
        mask=mask_m[:, None] & mask_n[None, :],
    )


@triton.jit
def batched_kernel(
    x_ptr, w_ptr, bias_ptr, x_2_ptr, g_ptr, w_2_ptr, out_ptr, out_2_ptr,
):
    pid = tl.program_id(0)
    if pid < 6:
        rms_norm_linear_2_part(
            pid % 2, pid // 2, x_2_ptr, g_ptr, w_2_ptr, out_2_ptr,
            M_2=40, H=128, N_2=64, EPS=1e-06, BLOCK_M_2=16, BLOCK_H=64, BLOCK_N_2=32,
        )
    else:
        batched_part(
            (pid - 6) % 2, (pid - 6) // 2 % 2, (pid - 6) // 4, x_ptr, w_ptr, bias_ptr, out_ptr,
            M=20, K=64, N=40, BLOCK_M=16, BLOCK_K=32, BLOCK_N=32,
        )


def launch_batched(x, w, bias, x_2, g, w_2):
    out = torch.empty((3, 20, 40), device=x.device, dtype=torch.float16)
    out_2 = torch.empty((40, 64), device=x.device, dtype=torch.float16)
    batched_kernel[(18, 1, 1)](
        x, w, bias, x_2, g, w_2, out, out_2,
        num_warps=4, num_stages=2,
    )
    return out, out_2

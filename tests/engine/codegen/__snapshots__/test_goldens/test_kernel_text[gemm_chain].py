import torch
import triton
import triton.language as tl


@triton.jit
def gemm_chain_kernel(
    a_ptr, b_ptr, d_ptr, out_ptr,
    K: tl.constexpr, N: tl.constexpr, H: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):
    pid_m = tl.program_id(0)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_h = tl.arange(0, H)
    e = tl.zeros((BLOCK_M, H), dtype=tl.float32)
    for n0 in range(0, N, BLOCK_N):
        offs_n = n0 + tl.arange(0, BLOCK_N)
        c = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k0 in range(0, K, BLOCK_K):
            offs_k = k0 + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
            b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
            c = tl.dot(a, b, c)
        d = tl.load(d_ptr + offs_n[:, None] * H + offs_h[None, :])
        e = tl.dot(c.to(tl.float16), d, e)
    tl.store(out_ptr + offs_m[:, None] * H + offs_h[None, :], e.to(tl.float16))


def launch_gemm_chain(a, b, d):
    out = torch.empty((512, 256), device=a.device, dtype=torch.float16)
    gemm_chain_kernel[(8, 1, 1)](
        a, b, d, out,
        K=512, N=256, H=256, BLOCK_M=64, BLOCK_K=64, BLOCK_N=64,
        num_warps=8, num_stages=3,
    )
    return out

import torch
import triton
import triton.language as tl


@triton.jit
def gated_mlp_kernel(
    x_ptr, w_gate_ptr, w_up_ptr, out_ptr,
    M: tl.constexpr, H: tl.constexpr, N: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):
    tl.extra.cuda.gdc_launch_dependents()
    pid_n = tl.program_id(0)
    offs_m = tl.arange(0, BLOCK_M)
    mask_m = offs_m < M
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    tl.extra.cuda.gdc_wait()
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x = tl.load(x_ptr + offs_m[:, None] * H + offs_h[None, :], mask=mask_m[:, None], other=0.0)
        w_gate = tl.load(w_gate_ptr + offs_h[:, None] * N + offs_n[None, :], eviction_policy="evict_first")
        gate = tl.dot(x, w_gate, gate)
        w_up = tl.load(w_up_ptr + offs_n[None, :] * H + offs_h[:, None], eviction_policy="evict_first")
        up = tl.dot(x, w_up, up)
    tl.store(
        out_ptr + offs_m[:, None] * N + offs_n[None, :],
        (gate * tl.sigmoid(gate) * up).to(tl.float16),
        mask=mask_m[:, None],
    )


def launch_gated_mlp(x, w_gate, w_up):
    out = torch.empty((8, 4096), device=x.device, dtype=torch.float16)
    gated_mlp_kernel[(128, 1, 1)](
        x, w_gate, w_up, out,
        M=8, H=4096, N=4096, BLOCK_M=16, BLOCK_H=128, BLOCK_N=32,
        num_warps=4, num_stages=3, launch_pdl=True,
    )
    return out

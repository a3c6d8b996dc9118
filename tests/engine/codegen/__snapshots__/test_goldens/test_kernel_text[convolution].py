import torch
import triton
import triton.language as tl


@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,
    O: tl.constexpr, C: tl.constexpr, R: tl.constexpr, S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_Q: tl.constexpr,
):
    pid_p = tl.program_id(0)
    pid_o = tl.program_id(1)
    pid_n = tl.program_id(2)
    offs_q = tl.arange(0, BLOCK_Q)
    mask_q = offs_q < Q
    offs_o = pid_o * BLOCK_O + tl.arange(0, BLOCK_O)
    acc = tl.zeros((BLOCK_Q, BLOCK_O), dtype=tl.float32)
    bias = tl.load(bias_ptr + offs_o).to(tl.float32)
    for r_i in range(0, R):
        for s_i in range(0, S):
            for c0 in range(0, C, BLOCK_C):
                offs_c = c0 + tl.arange(0, BLOCK_C)
                x = tl.load(
                    x_ptr
                    - 29
                    + pid_n * C * P * Q
                    + offs_c[None, :] * P * Q
                    + pid_p * Q
                    + r_i * 28
                    + offs_q[:, None]
                    + s_i,
                    mask=mask_q[:, None]
                    & (pid_p + r_i >= 1)
                    & (pid_p + r_i < 29)
                    & (offs_q[:, None] + s_i >= 1)
                    & (offs_q[:, None] + s_i < 29),
                    other=0.0,
                )
                w = tl.load(w_ptr + offs_o[None, :] * C * R * S + offs_c[:, None] * R * S + r_i * S + s_i)
                acc = tl.dot(x, w, acc)
    biased = acc + bias[None, :]
    tl.store(
        out_ptr + pid_n * O * P * Q + offs_o[None, :] * P * Q + pid_p * Q + offs_q[:, None],
        (biased * tl.sigmoid(biased)).to(tl.float16),
        mask=mask_q[:, None],
    )


def launch_convolution(x, w, bias):
    out = torch.empty((8, 128, 28, 28), device=x.device, dtype=torch.float16)
    convolution_kernel[(28, 2, 8)](
        x, w, bias, out,
        O=128, C=128, R=3, S=3, P=28, Q=28, BLOCK_O=64, BLOCK_C=64, BLOCK_Q=32,
        num_warps=4, num_stages=3,
    )
    return out

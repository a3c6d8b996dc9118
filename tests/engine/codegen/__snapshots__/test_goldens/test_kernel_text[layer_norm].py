import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,
    H: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    pid_m = tl.program_id(0)
    mu_total = 0.0
    for h0 in tl.range(0, H, BLOCK_H, num_stages=3):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x = tl.load(x_ptr + pid_m * H + offs_h, eviction_policy="evict_last").to(tl.float32)
        mu_total += tl.sum(x)
    mu = mu_total / H
    var_total = 0.0
    for h0 in tl.range(0, H, BLOCK_H, num_stages=3):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x = tl.load(x_ptr + pid_m * H + offs_h, eviction_policy="evict_last").to(tl.float32)
        centered = x - mu
        var_total += tl.sum(centered * centered)
    inv_std = tl.rsqrt(var_total / H + EPS)
    for h0 in range(0, H, BLOCK_H):
        offs_h = h0 + tl.arange(0, BLOCK_H)
        x = tl.load(x_ptr + pid_m * H + offs_h).to(tl.float32)
        w = tl.load(w_ptr + offs_h).to(tl.float32)
        b = tl.load(b_ptr + offs_h).to(tl.float32)
        tl.store(out_ptr + pid_m * H + offs_h, ((x - mu) * inv_std * w + b).to(tl.float16))


def launch_layer_norm(x, w, b):
    out = torch.empty((1024, 32768), device=x.device, dtype=torch.float16)
    layer_norm_kernel[(1024, 1, 1)](
        x, w, b, out,
        H=32768, EPS=1e-05, BLOCK_H=2048,
        num_warps=4, num_stages=3,
    )
    return out

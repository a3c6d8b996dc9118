import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    query_ptr, key_ptr, value_ptr, mask_ptr, out_ptr,
    Q: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
    SCALE: tl.constexpr, LOG2E: tl.constexpr,
    BLOCK_KV: tl.constexpr,
):
    pid_b = tl.program_id(0)
    offs_q = tl.arange(0, Q)
    offs_d = tl.arange(0, D)
    offs_e = tl.arange(0, E)
    query = tl.load(
        query_ptr + pid_b * Q * D + offs_q[:, None] * D + offs_d[None, :],
        eviction_policy="evict_first",
    )
    row_max = tl.full((Q,), float("-inf"), tl.float32)
    row_sum = tl.zeros((Q,), dtype=tl.float32)
    acc = tl.zeros((Q, E), dtype=tl.float32)
    for kv0 in range(0, KV, BLOCK_KV):
        offs_kv = kv0 + tl.arange(0, BLOCK_KV)
        key = tl.load(
            key_ptr + pid_b * KV * D + offs_kv[None, :] * D + offs_d[:, None],
            eviction_policy="evict_first",
        )
        mask = tl.load(mask_ptr + offs_q[:, None] * KV + offs_kv[None, :])
        biased = tl.dot(query, key) * SCALE + mask
        new_max = tl.maximum(row_max, tl.max(biased, axis=1) * LOG2E)
        shift = tl.where(new_max == float("-inf"), 0.0, new_max)
        alpha = tl.exp2(row_max - shift)
        p = tl.exp2(biased * LOG2E - shift[:, None])
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        value = tl.load(
            value_ptr + pid_b * KV * E + offs_kv[:, None] * E + offs_e[None, :],
            eviction_policy="evict_first",
        )
        acc *= alpha[:, None]
        acc = tl.dot(p.to(tl.float16), value, acc)
        row_max = new_max
    tl.store(
        out_ptr + pid_b * Q * E + offs_q[:, None] * E + offs_e[None, :],
        (acc * (1.0 / row_sum)[:, None]).to(tl.float16),
    )


def launch_attention(query, key, value, mask):
    out = torch.empty((2, 16, 16), device=query.device, dtype=torch.float16)
    attention_kernel[(2, 1, 1)](
        query, key, value, mask, out,
        Q=16, KV=96, D=16, E=16, SCALE=0.125, LOG2E=1.4426950408889634, BLOCK_KV=32,
        num_warps=4, num_stages=3,
    )
    return out

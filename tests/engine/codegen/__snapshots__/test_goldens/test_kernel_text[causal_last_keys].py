import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr,
    Q: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
    SCALE_LOG2E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr,
):
    pid_q = tl.program_id(0)
    pid_b = tl.program_id(1)
    offs_q = pid_q * BLOCK_Q + tl.arange(0, BLOCK_Q)
    mask_q = offs_q < Q
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < D
    offs_e = tl.arange(0, BLOCK_E)
    mask_e = offs_e < E
    query = tl.load(
        query_ptr + pid_b * Q * D + offs_q[:, None] * D + offs_d[None, :],
        mask=mask_q[:, None] & mask_d[None, :],
        other=0.0,
        eviction_policy="evict_first",
    )
    row_max = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q, BLOCK_E), dtype=tl.float32)
    for kv0 in range(0, tl.minimum(KV, (pid_q + 1) * BLOCK_Q + 80), BLOCK_KV):
        offs_kv = kv0 + tl.arange(0, BLOCK_KV)
        mask_kv = offs_kv < KV
        key = tl.load(
            key_ptr + pid_b * KV * D + offs_kv[None, :] * D + offs_d[:, None],
            mask=mask_d[:, None] & mask_kv[None, :],
            other=0.0,
        )
        scores_masked = tl.where(offs_kv[None, :] <= offs_q[:, None] + 80, tl.dot(query, key), float("-inf"))
        scores_masked_masked = tl.where(mask_kv[None, :], scores_masked, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores_masked_masked, axis=1) * SCALE_LOG2E)
        alpha = tl.exp2(row_max - new_max)
        p = tl.exp2(scores_masked_masked * SCALE_LOG2E - new_max[:, None])
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        value = tl.load(
            value_ptr + pid_b * KV * E + offs_kv[:, None] * E + offs_e[None, :],
            mask=mask_kv[:, None] & mask_e[None, :],
            other=0.0,
        )
        acc *= alpha[:, None]
        acc = tl.dot(p.to(tl.float16), value, acc)
        row_max = new_max
    tl.store(
        out_ptr + pid_b * Q * E + offs_q[:, None] * E + offs_e[None, :],
        (acc * (1.0 / row_sum)[:, None]).to(tl.float16),
        mask=mask_q[:, None] & mask_e[None, :],
    )


def launch_attention(query, key, value):
    out = torch.empty((2, 20, 24), device=query.device, dtype=torch.float16)
    attention_kernel[(2, 2, 1)](
        query, key, value, out,
        Q=20, KV=100, D=24, E=24, SCALE_LOG2E=0.18033688011112042, BLOCK_Q=16, BLOCK_KV=32,
        BLOCK_D=32, BLOCK_E=32,
        num_warps=4, num_stages=3,
    )
    return out

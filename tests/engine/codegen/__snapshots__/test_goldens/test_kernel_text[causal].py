import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr,
    Q: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
    SCALE_LOG2E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):
    pid_q = tl.program_id(0)
    pid_b = tl.program_id(1)
    offs_q = pid_q * BLOCK_Q + tl.arange(0, BLOCK_Q)
    offs_d = tl.arange(0, D)
    offs_e = tl.arange(0, E)
    query = tl.load(query_ptr + pid_b * Q * D + offs_q[:, None] * D + offs_d[None, :])
    row_max = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q, E), dtype=tl.float32)
    for kv0 in range(0, tl.minimum(KV, (pid_q + 1) * BLOCK_Q), BLOCK_KV):
        offs_kv = kv0 + tl.arange(0, BLOCK_KV)
        key = tl.load(key_ptr + pid_b * KV * D + offs_kv[None, :] * D + offs_d[:, None])
        scores_masked = tl.where(offs_kv[None, :] <= offs_q[:, None], tl.dot(query, key), float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores_masked, axis=1) * SCALE_LOG2E)
        alpha = tl.exp2(row_max - new_max)
        p = tl.exp2(scores_masked * SCALE_LOG2E - new_max[:, None])
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        value = tl.load(value_ptr + pid_b * KV * E + offs_kv[:, None] * E + offs_e[None, :])
        acc *= alpha[:, None]
        acc = tl.dot(p.to(tl.float16), value, acc)
        row_max = new_max
    tl.store(
        out_ptr + pid_b * Q * E + offs_q[:, None] * E + offs_e[None, :],
        (acc * (1.0 / row_sum)[:, None]).to(tl.float16),
    )


def launch_attention(query, key, value):
    out = torch.empty((32, 2048, 64), device=query.device, dtype=torch.float16)
    attention_kernel[(32, 32, 1)](
        query, key, value, out,
        Q=2048, KV=2048, D=64, E=64, SCALE_LOG2E=0.18033688011112042, BLOCK_Q=64, BLOCK_KV=64,
        num_warps=4, num_stages=3,
    )
    return out

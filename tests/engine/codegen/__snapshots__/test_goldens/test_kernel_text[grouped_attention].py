import torch
import triton
import triton.language as tl


@triton.jit
def grouped_attention_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr,
    KVH: tl.constexpr, GROUP: tl.constexpr, Q: tl.constexpr, D: tl.constexpr, KV: tl.constexpr, E: tl.constexpr,
    SCALE_LOG2E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):
    pid_q = tl.program_id(0)
    pid_s = tl.program_id(1)
    pid_kvh = tl.program_id(2)
    offs_q_group = tl.arange(0, BLOCK_Q * GROUP)
    offs_q = pid_q * BLOCK_Q + offs_q_group // GROUP
    offs_group = offs_q_group % GROUP
    mask_q_group = offs_q < Q
    offs_d = tl.arange(0, D)
    offs_e = tl.arange(0, E)
    query = tl.load(
        query_ptr
        + pid_s * Q * KVH * GROUP * D
        + offs_q[:, None] * KVH * GROUP * D
        + pid_kvh * GROUP * D
        + offs_group[:, None] * D
        + offs_d[None, :],
        mask=mask_q_group[:, None],
        other=0.0,
    )
    row_max = tl.full((BLOCK_Q * GROUP,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_Q * GROUP,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q * GROUP, E), dtype=tl.float32)
    for kv0 in range(0, KV, BLOCK_KV):
        offs_kv = kv0 + tl.arange(0, BLOCK_KV)
        mask_kv = offs_kv < KV
        key = tl.load(
            key_ptr + pid_s * KV * KVH * D + offs_kv[None, :] * KVH * D + pid_kvh * D + offs_d[:, None],
            mask=mask_kv[None, :],
            other=0.0,
        )
        scores_masked = tl.where(mask_kv[None, :], tl.dot(query, key), float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores_masked, axis=1) * SCALE_LOG2E)
        alpha = tl.exp2(row_max - new_max)
        p = tl.exp2(scores_masked * SCALE_LOG2E - new_max[:, None])
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        value = tl.load(
            value_ptr + pid_s * KV * KVH * E + offs_kv[:, None] * KVH * E + pid_kvh * E + offs_e[None, :],
            mask=mask_kv[:, None],
            other=0.0,
        )
        acc *= alpha[:, None]
        acc = tl.dot(p.to(tl.float16), value, acc)
        row_max = new_max
    tl.store(
        out_ptr
        + pid_s * Q * KVH * GROUP * E
        + offs_q[:, None] * KVH * GROUP * E
        + pid_kvh * GROUP * E
        + offs_group[:, None] * E
        + offs_e[None, :],
        (acc * (1.0 / row_sum)[:, None]).to(tl.float16),
        mask=mask_q_group[:, None],
    )


def launch_grouped_attention(query, key, value):
    out = torch.empty((2, 10, 128), device=query.device, dtype=torch.float16)
    grouped_attention_kernel[(2, 2, 2)](
        query, key, value, out,
        KVH=2, GROUP=4, Q=10, D=16, KV=40, E=16, SCALE_LOG2E=0.2885390081777927, BLOCK_Q=8,
        BLOCK_KV=16,
        num_warps=4, num_stages=3,
    )
    return out

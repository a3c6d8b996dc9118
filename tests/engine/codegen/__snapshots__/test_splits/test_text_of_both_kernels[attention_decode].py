import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    query_ptr, key_ptr, value_ptr, row_sum_parts_ptr, acc_parts_ptr, p_max_ptr,
    B: tl.constexpr, Q: tl.constexpr, D: tl.constexpr, E: tl.constexpr, KV_SPLIT: tl.constexpr, KV_PART: tl.constexpr,
    SCALE_LOG2E: tl.constexpr,
    BLOCK_Q: tl.constexpr,
):
    pid_kv_split = tl.program_id(0)
    pid_b = tl.program_id(1)
    offs_e = tl.arange(0, E)
    offs_kv_part = tl.arange(0, KV_PART)
    offs_d = tl.arange(0, D)
    offs_q = tl.arange(0, BLOCK_Q)
    mask_q = offs_q < Q
    query = tl.load(
        query_ptr + pid_b * Q * D + offs_q[None, :] * D + offs_d[:, None],
        mask=mask_q[None, :],
        other=0.0,
    )
    key = tl.load(
        key_ptr
        + pid_b * KV_SPLIT * KV_PART * D
        + pid_kv_split * KV_PART * D
        + offs_kv_part[:, None] * D
        + offs_d[None, :],
        eviction_policy="evict_first",
    )
    scores = tl.dot(key, query)
    row_max = tl.max(scores, axis=0) * SCALE_LOG2E
    p = tl.exp2(scores * SCALE_LOG2E - row_max[None, :])
    tl.store(row_sum_parts_ptr + pid_kv_split * B * Q + pid_b * Q + offs_q, tl.sum(p, axis=0), mask=mask_q)
    value = tl.load(
        value_ptr
        + pid_b * KV_SPLIT * KV_PART * E
        + pid_kv_split * KV_PART * E
        + offs_kv_part[None, :] * E
        + offs_e[:, None],
        eviction_policy="evict_first",
    )
    tl.store(
        acc_parts_ptr + pid_kv_split * B * Q * E + pid_b * Q * E + offs_q[None, :] * E + offs_e[:, None],
        tl.dot(value, p.to(tl.float16)),
        mask=mask_q[None, :],
    )
    tl.store(p_max_ptr + pid_kv_split * B * Q + pid_b * Q + offs_q, row_max, mask=mask_q)


@triton.jit
def attention_combine_kernel(
    row_sum_parts_ptr, acc_parts_ptr, p_max_ptr, out_ptr,
    B: tl.constexpr, Q: tl.constexpr, E: tl.constexpr, KV_SPLIT: tl.constexpr,
):
    pid_q = tl.program_id(0)
    pid_b = tl.program_id(1)
    offs_kv_split = tl.arange(0, KV_SPLIT)
    offs_e = tl.arange(0, E)
    acc_parts = tl.load(
        acc_parts_ptr + offs_kv_split[:, None] * B * Q * E + pid_b * Q * E + pid_q * E + offs_e[None, :],
        eviction_policy="evict_first",
    )
    p_max = tl.load(p_max_ptr + offs_kv_split * B * Q + pid_b * Q + pid_q, eviction_policy="evict_first")
    row_sum_parts = tl.load(
        row_sum_parts_ptr + offs_kv_split * B * Q + pid_b * Q + pid_q,
        eviction_policy="evict_first",
    )
    weight = tl.exp2(p_max - tl.max(p_max))
    o = tl.sum(acc_parts * weight[:, None], axis=0) * (1.0 / tl.sum(row_sum_parts * weight))
    tl.store(out_ptr + pid_b * Q * E + pid_q * E + offs_e, o.to(tl.float16))


def launch_attention(query, key, value):
    row_sum_parts = torch.empty((64, 2, 8), device=query.device, dtype=torch.float32)
    acc_parts = torch.empty((64, 2, 8, 128), device=query.device, dtype=torch.float32)
    p_max = torch.empty((64, 2, 8), device=query.device, dtype=torch.float32)
    out = torch.empty((2, 8, 128), device=query.device, dtype=torch.float16)
    attention_kernel[(64, 2, 1)](
        query, key, value, row_sum_parts, acc_parts, p_max,
        B=2, Q=8, D=128, E=128, KV_SPLIT=64, KV_PART=128, SCALE_LOG2E=0.18033688011112042,
        BLOCK_Q=16,
        num_warps=4, num_stages=3,
    )
    attention_combine_kernel[(8, 2, 1)](
        row_sum_parts, acc_parts, p_max, out,
        B=2, Q=8, E=128, KV_SPLIT=64,
        num_warps=4, num_stages=3,
    )
    return out

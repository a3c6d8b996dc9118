import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    query_ptr, key_ptr, value_ptr, row_sum_parts_ptr, acc_parts_ptr, p_max_ptr,
    B: tl.constexpr, Q: tl.constexpr, D: tl.constexpr, E: tl.constexpr, KV_SPLIT: tl.constexpr, KV_PART: tl.constexpr,
    SCALE_LOG2E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV_PART: tl.constexpr,
):
    pid_kv_split = tl.program_id(0)
    pid_q = tl.program_id(1)
    pid_b = tl.program_id(2)
    offs_q = pid_q * BLOCK_Q + tl.arange(0, BLOCK_Q)
    offs_d = tl.arange(0, D)
    offs_e = tl.arange(0, E)
    query = tl.load(query_ptr + pid_b * Q * D + offs_q[:, None] * D + offs_d[None, :])
    row_max = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q, E), dtype=tl.float32)
    for kv_part0 in range(0, KV_PART, BLOCK_KV_PART):
        offs_kv_part = kv_part0 + tl.arange(0, BLOCK_KV_PART)
        key = tl.load(
            key_ptr
            + pid_b * KV_SPLIT * KV_PART * D
            + pid_kv_split * KV_PART * D
            + offs_kv_part[None, :] * D
            + offs_d[:, None],
        )
        scores = tl.dot(query, key)
        new_max = tl.maximum(row_max, tl.max(scores, axis=1) * SCALE_LOG2E)
        alpha = tl.exp2(row_max - new_max)
        p = tl.exp2(scores * SCALE_LOG2E - new_max[:, None])
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        value = tl.load(
            value_ptr
            + pid_b * KV_SPLIT * KV_PART * E
            + pid_kv_split * KV_PART * E
            + offs_kv_part[:, None] * E
            + offs_e[None, :],
        )
        acc *= alpha[:, None]
        acc = tl.dot(p.to(tl.float16), value, acc)
        row_max = new_max
    tl.store(row_sum_parts_ptr + pid_kv_split * B * Q + pid_b * Q + offs_q, row_sum)
    tl.store(
        acc_parts_ptr + pid_kv_split * B * Q * E + pid_b * Q * E + offs_q[:, None] * E + offs_e[None, :],
        acc,
    )
    tl.store(p_max_ptr + pid_kv_split * B * Q + pid_b * Q + offs_q, row_max)


@triton.jit
def attention_combine_kernel(
    row_sum_parts_ptr, acc_parts_ptr, p_max_ptr, out_ptr,
    B: tl.constexpr, Q: tl.constexpr, E: tl.constexpr, KV_SPLIT: tl.constexpr,
    BLOCK_Q: tl.constexpr,
):
    pid_q = tl.program_id(0)
    pid_b = tl.program_id(1)
    offs_kv_split = tl.arange(0, KV_SPLIT)
    offs_q = pid_q * BLOCK_Q + tl.arange(0, BLOCK_Q)
    offs_e = tl.arange(0, E)
    acc_parts = tl.load(
        acc_parts_ptr
        + offs_kv_split[:, None, None] * B * Q * E
        + pid_b * Q * E
        + offs_q[None, :, None] * E
        + offs_e[None, None, :],
        eviction_policy="evict_first",
    )
    p_max = tl.load(
        p_max_ptr + offs_kv_split[:, None] * B * Q + pid_b * Q + offs_q[None, :],
        eviction_policy="evict_first",
    )
    row_sum_parts = tl.load(
        row_sum_parts_ptr + offs_kv_split[:, None] * B * Q + pid_b * Q + offs_q[None, :],
        eviction_policy="evict_first",
    )
    weight = tl.exp2(p_max - tl.max(p_max, axis=0)[None, :])
    o = (
        tl.sum(acc_parts * weight[:, :, None], axis=0)
        * (1.0 / tl.sum(row_sum_parts * weight, axis=0))[:, None]
    )
    tl.store(out_ptr + pid_b * Q * E + offs_q[:, None] * E + offs_e[None, :], o.to(tl.float16))


def launch_attention(query, key, value):
    row_sum_parts = torch.empty((16, 2, 256), device=query.device, dtype=torch.float32)
    acc_parts = torch.empty((16, 2, 256, 64), device=query.device, dtype=torch.float32)
    p_max = torch.empty((16, 2, 256), device=query.device, dtype=torch.float32)
    out = torch.empty((2, 256, 64), device=query.device, dtype=torch.float16)
    attention_kernel[(16, 4, 2)](
        query, key, value, row_sum_parts, acc_parts, p_max,
        B=2, Q=256, D=64, E=64, KV_SPLIT=16, KV_PART=256, SCALE_LOG2E=0.18033688011112042,
        BLOCK_Q=64, BLOCK_KV_PART=64,
        num_warps=4, num_stages=3,
    )
    attention_combine_kernel[(64, 2, 1)](
        row_sum_parts, acc_parts, p_max, out,
        B=2, Q=256, E=64, KV_SPLIT=16, BLOCK_Q=4,
        num_warps=4, num_stages=3,
    )
    return out

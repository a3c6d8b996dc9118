"""Schedules of block graphs at full size."""

from __future__ import annotations

from mugraph.ir.block import Schedule

SCHEDULES = {
    "rms_norm_linear": Schedule((("n", 128), ("b", 16)), {"h": 64}),
    "rms_norm_linear_late_sum": Schedule((("n", 128), ("b", 16)), {"h": 64}),
    "gated_mlp": Schedule((("n", 128), ("m", 8)), {"k": 128}),
    "lora": Schedule((("n", 128), ("m", 16)), {"k": 64}),
    "attention": Schedule((("m", 64), ("h", 1)), {"n": 128}),
    "n_trans": Schedule((("b", 1),)),
    "gemm_chain": Schedule((("m", 64), ("h", 64)), {"n": 32, "k": 32}),
}

"""Named pairs of a block graph and a schedule, small enough for the interpreter; tests and the child share them."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.transforms.reduced import reduced

import tests.engine.codegen.graphs as g
import tests.engine.codegen.graphs_maxima as gm
import tests.engine.codegen.graphs_sums as gs

Case = tuple[BlockGraph, Schedule]


def _grid(*grid: tuple[str, int], swap: bool = False, **loops: int) -> Schedule:
    return Schedule(grid, loops, swap=swap)


def _cases() -> dict[str, Case]:
    n64h64 = _grid(("n", 64), h=64)
    chain = _grid(("m", 16), k=16, n=32)
    rows = _grid(("q", 16), ("b", 1), kv=32)
    pixels = (("q", 16), ("o", 16), ("p", 1), ("n", 1))
    cases: dict[str, Case] = {
        "rms_norm_linear": (g.rms_norm_linear(16, 256, 128), n64h64),
        "rms_norm_linear_2_rows": (g.rms_norm_linear(2, 256, 128), n64h64),
        "rms_norm_linear_1_row": (g.rms_norm_linear(1, 256, 128), n64h64),
        "rms_norm_linear_bare": (g.rms_norm_linear(16, 256, 128, eps=False, weight=False), n64h64),
        "rms_norm_linear_tail": (g.rms_norm_linear(3, 200, 80), n64h64),
        "rms_norm_linear_m_grid": (g.rms_norm_linear(40, 128, 64), _grid(("n", 32), ("m", 16), h=64)),
        "rms_norm_linear_m_scalar": (g.rms_norm_linear(3, 128, 64), _grid(("n", 32), ("m", 1), h=64)),
        "rms_norm_linear_one_iteration": (g.rms_norm_linear(16, 100, 64), _grid(("n", 32), h=128)),
        "rms_norm_linear_tile_1": (g.rms_norm_linear(4, 12, 32), _grid(("n", 32), h=1)),
        "rms_norm_linear_small_tiles": (g.rms_norm_linear(5, 36, 24), _grid(("n", 8), h=4)),
        "rms_norm_linear_bf16": (g.rms_norm_linear(8, 128, 64, dtype="bf16"), n64h64),
        "rms_norm_linear_f32": (g.rms_norm_linear(8, 128, 64, dtype="f32"), n64h64),
        "rms_norm_linear_6145": (g.rms_norm_linear(2, 6145, 32), _grid(("n", 16), h=1024)),
        "gated_mlp": (g.gated_mlp(8, 128, 128), _grid(("n", 32), h=32)),
        "gated_mlp_tail": (g.gated_mlp(8, 144, 80), _grid(("n", 32), h=32)),
        "gated_mlp_bf16": (g.gated_mlp(4, 64, 64, dtype="bf16"), _grid(("n", 32), h=32)),
        "lora": (g.lora(16, 128, 128, 16), n64h64),
        "lora_side_by_side": (g.lora_side_by_side(16, 128, 128, 16), n64h64),
        "lora_side_by_side_tail": (g.lora_side_by_side(5, 72, 80, 8), _grid(("n", 32), h=32)),
        "lora_rank_8_tail": (g.lora(5, 72, 80, 8), _grid(("n", 32), h=32)),
        "ntrans": (g.ntrans(8, 256), _grid(("m", 1))),
        "ntrans_tail": (g.ntrans(7, 80), _grid(("m", 4))),
        "attention": (g.attention(2, 32, 128, 32), rows),
        "attention_tail": (g.attention(2, 20, 100, 24), rows),
        "attention_unscaled": (g.attention(1, 16, 64, 16, scale=None), rows),
        "attention_negative_scale": (g.attention(1, 16, 64, 16, scale=-0.5), rows),
        "attention_whole": (g.attention(2, 16, 80, 16, looped=False), _grid(("b", 1), ("q", 16))),
        "attention_one_iteration": (g.attention(2, 16, 24, 16), rows),
        "attention_mask": (g.attention(2, 16, 96, 16, bias=True), rows),
        "attention_large_logits": (g.attention(1, 16, 96, 64, scale=40.0), rows),
        "attention_1_query": (g.attention(2, 1, 70, 32), rows),
        "attention_normed": (g.attention(2, 16, 96, 32, norm=True), rows),
        "attention_bf16": (g.attention(2, 16, 64, 16, dtype="bf16"), rows),
        "attention_f32": (g.attention(2, 16, 64, 16, dtype="f32"), rows),
        "causal": (g.attention(2, 70, 70, 32, diagonal=0), rows),
        "causal_powers_of_two": (g.attention(1, 64, 64, 16, diagonal=0), rows),
        "causal_more_keys": (g.attention(2, 20, 100, 24, diagonal=0), rows),
        "causal_more_queries": (g.attention(2, 90, 40, 16, diagonal=0), rows),
        "causal_last_keys": (g.attention(2, 20, 100, 24, diagonal=80), rows),
        "causal_one_further": (g.attention(1, 50, 50, 16, diagonal=1), rows),
        "causal_one_query": (g.attention(2, 1, 70, 32, diagonal=40), rows),
        "causal_scalar_queries": (g.attention(2, 9, 70, 32, diagonal=0), _grid(("q", 1), ("b", 1), kv=16)),
        "causal_whole_queries": (g.attention(2, 20, 70, 16, diagonal=3), _grid(("b", 1), kv=16)),
        "causal_whole": (g.attention(2, 40, 80, 16, looped=False, diagonal=0), _grid(("b", 1), ("q", 16))),
        # Logits that are masked lie up to hundreds above the others, whose exponentials vanish beside them.
        "causal_large_logits": (g.attention(1, 48, 48, 64, scale=8.0, diagonal=0), rows),
        "causal_negative_scale": (g.attention(1, 48, 48, 16, scale=-0.5, diagonal=0), rows),
        "causal_bias": (g.attention(2, 40, 40, 16, bias=True, diagonal=0), rows),
        "causal_normed": (g.attention(2, 40, 96, 32, norm=True, diagonal=56), rows),
        "causal_from_the_end": (g.attention(2, 50, 70, 16, diagonal=0, later=True), rows),
        "causal_linear": (g.causal_linear_attention(2, 50, 70, 16), rows),
        "causal_grouped": (
            g.grouped_attention(2, 2, 4, 10, 16, 40, causal=True),
            _grid(("q", 8), ("s", 1), ("kvh", 1), kv=16),
        ),
        "grouped_attention": (
            g.grouped_attention(2, 2, 4, 3, 16, 40),
            _grid(("s", 1), ("kvh", 1), kv=16),
        ),
        "grouped_attention_rows_tiled": (
            g.grouped_attention(2, 2, 4, 10, 16, 40),
            _grid(("q", 8), ("s", 1), ("kvh", 1), kv=16),
        ),
        "grouped_attention_group_scalar": (
            g.grouped_attention(2, 2, 3, 16, 16, 40),
            _grid(("q", 16), ("s", 1), ("kvh", 1), ("group", 1), kv=16),
        ),
        "packed_rows": (g.packed_rows(5, 40, 48, 80), _grid(("s", 4), ("n", 32))),
        "packed_rows_of_whole_queries": (g.packed_rows(6, 7, 48, 80), _grid(("g", 4), ("n", 32))),
        "packed_rows_and_depth": (g.packed_rows(4, 9, 16, 64, depth=True), _grid(("s", 4), ("n", 32))),
        "inner_products": (g.inner_products(5, 40, 30), _grid(("n", 4))),
        "layer_norm": (g.layer_norm(6, 80), _grid(("m", 4))),
        "layer_norm_looped": (g.layer_norm(6, 200, looped=True), _grid(("m", 4), h=64)),
        "softmax": (g.softmax(6, 80), _grid(("m", 2))),
        "softmax_looped": (g.softmax(6, 80), _grid(("m", 1))),
        "softmax_two_passes": (g.softmax(6, 200, looped=True), _grid(("m", 2), n=64)),
        "gemm_chain_nest": (g.gemm_chain(32, 64, 96, 48, loops=("n", "k")), chain),
        "gemm_chain_tails": (g.gemm_chain(20, 40, 80, 24, loops=("n", "k")), chain),
        "gemm_chain_n": (g.gemm_chain(32, 32, 96, 32, loops=("n",)), _grid(("m", 16), n=32)),
        "gemm_chain_whole": (g.gemm_chain(32, 16, 48, 32, loops=()), _grid(("m", 16))),
        "gemm_chain_h_grid": (g.gemm_chain(32, 64, 64, 80, loops=("n", "k")), _grid(("h", 32), ("m", 16), k=32, n=32)),
        "batched": (g.batched(3, 20, 64, 40), _grid(("n", 32), ("m", 16), ("b", 1), k=32)),
        "mixed_types": (g.mixed_types(16, 64, 64), _grid(("n", 32), k=32)),
        "tile_sum": (g.tile_sum(6, 100), _grid(("m", 2), h=32)),
        "activations": (g.activations(4, 50), _grid(("m", 2))),
        # exp overflows on the way, and the functions do not
        "activations_large": (g.activations(4, 50, scale=1e4), _grid(("m", 2))),
        "activations_huge": (g.activations(4, 50, scale=-1e30), _grid(("m", 2))),
        "convolution": (g.convolution(2, 24, 20, 5, 9), _grid(*pixels, r=1, s=1, c=16)),
        "convolution_strided": (
            g.convolution(1, 16, 16, 9, 21, taps=(5, 2), stride=2, pad=2, loops="s r"),
            _grid(*pixels, r=1, s=1),
        ),
        "convolution_dilated": (
            g.convolution(1, 16, 16, 7, 8, stride=3, pad=0, dilation=2, loops="c r s"),
            _grid(*pixels, swap=True, r=1, s=1, c=16),
        ),
        "convolution_transposed": (
            g.convolution(1, 16, 16, 4, 7, spread=2, more=1, pad=1),
            _grid(*pixels, r=1, s=1, c=16),
        ),
        "convolution_transposed_unaligned": (
            g.convolution(1, 16, 16, 3, 5, spread=3, pad=4, dilation=2, loops="s r"),
            _grid(*pixels, r=1, s=1),
        ),
        "convolution_gated": (g.convolution(1, 16, 16, 4, 5, loops="r s", gated=True), _grid(*pixels, r=1, s=1)),
        "convolution_f32": (g.convolution(1, 16, 16, 4, 18, dtype="f32", loops="r s"), _grid(*pixels, r=1, s=1)),
        "broadcast_load": (g.broadcast_load(4, 50), _grid(("m", 2))),
        "pooled": (gm.pooled((9, 10), taps=(3, 2), stride=2, pad=1), _grid(("q", 4), ("p", 1))),
        "pooled_dilated": (gm.pooled((8, 11), taps=(3, 4), stride=1, pad=2, dilation=3), _grid(("q", 4), ("p", 1))),
        "pooled_looped": (
            gm.pooled((7, 21), taps=(5, 3), stride=3, pad=2, dilation=2, loops="r"),
            _grid(("q", 4), r=1),
        ),
        "pooled_one": (gm.pooled((3, 2), taps=(3, 2), stride=1, pad=1, positions=(1, 1)), _grid(("c", 2))),
        "largest_sum": (gm.largest_sum(5, 12, 20), _grid(("m", 2), h=4, k=8)),
        "scaled_linear": (gm.scaled_linear(16, 200, 80), n64h64),
        "scaled_linear_1_row": (gm.scaled_linear(1, 64, 64, dtype="bf16"), _grid(("n", 32), h=32)),
        "scaled_linear_tile_1": (gm.scaled_linear(4, 12, 32), _grid(("n", 32), h=1)),
        "scaled_linear_one_iteration": (gm.scaled_linear(16, 60, 64), _grid(("n", 32), h=64)),
        "maxout": (gm.maxout(20, 72, 48), _grid(("n", 32), ("m", 16), h=32)),
        "tile_max": (gm.tile_max(6, 100), _grid(("m", 2), h=32)),
        "tile_max_rows_alone": (gm.tile_max(3, 100), _grid(("m", 1), h=16)),
        "holes": (gm.holes(8, 100), _grid(("m", 4), h=32)),
        "holes_whole": (gm.holes(8, 100), _grid(("m", 1), h=128)),
        "value_range": (gm.value_range(6, 50), _grid(("m", 2))),
        "halved_attention": (gs.halved_attention(2, 32, 96, 16, 32), rows),
        "halved_attention_tail": (gs.halved_attention(2, 20, 70, 12, 24), rows),
        "halved_attention_f32": (gs.halved_attention(1, 20, 40, 16, 16, dtype="f32"), rows),
        "halved_attention_bf16": (gs.halved_attention(1, 20, 40, 16, 16, dtype="bf16"), rows),
        "three_products": (gs.three_products(20, 24, 40, 50), _grid(("n", 32), ("m", 16))),
    }
    for name in (
        "rms_norm_linear", "rms_norm_linear_2_rows", "rms_norm_linear_tail", "gated_mlp_tail", "lora_rank_8_tail",
        "lora_side_by_side_tail",
        "attention_tail", "attention_normed", "causal", "causal_last_keys", "halved_attention_tail", "three_products",
        "gemm_chain_tails", "batched", "grouped_attention_rows_tiled", "packed_rows_and_depth",
    ):  # fmt: skip
        block, schedule = cases[name]
        cases[f"{name}_swapped"] = (block, replace(schedule, swap=True))
    for name, case in REAL_SIZES.items():
        cases[f"{name}_reduced"] = reduced(*case)
    return cases


REAL_SIZES: dict[str, Case] = {
    "rms_norm_linear": (g.rms_norm_linear(2, 4096, 6144), _grid(("n", 64), h=256, swap=True)),
    "rms_norm_linear_uneven": (g.rms_norm_linear(16, 4100, 6145), _grid(("n", 64), h=128)),
    "gated_mlp": (g.gated_mlp(8, 4096, 4096), _grid(("n", 32), h=128)),
    "attention": (g.attention(32, 256, 4100, 80), _grid(("q", 64), ("b", 1), kv=64)),
    "grouped_attention": (
        g.grouped_attention(8, 2, 4, 64, 128, 4096),
        _grid(("q", 16), ("kvh", 1), ("s", 1), kv=64),
    ),
    "causal": (g.attention(32, 2048, 2048, 64, diagonal=0), _grid(("q", 64), ("b", 1), kv=64)),
    "causal_last_keys": (g.attention(32, 100, 4000, 128, diagonal=3900), _grid(("q", 32), ("b", 1), kv=64)),
    "gemm_chain": (
        g.gemm_chain(512, 512, 256, 256, loops=("n", "k")),
        replace(_grid(("m", 64), n=64, k=64), num_warps=8),
    ),
    "layer_norm": (g.layer_norm(1024, 32768, looped=True), _grid(("m", 1), h=2048)),
    "convolution": (
        g.convolution(8, 128, 128, 28, 28),
        _grid(("q", 32), ("p", 1), ("o", 64), ("n", 1), swap=True, r=1, s=1, c=64),
    ),
    "scaled_linear": (gm.scaled_linear(64, 4100, 512), _grid(("n", 64), h=64)),
    "batched_f32": (g.batched(8, 100, 1000, 520, dtype="f32"), _grid(("n", 64), ("m", 32), ("b", 1), k=64)),
}
"""Sizes as they occur; the interpreter sees them reduced, the compiler as they are."""

CASES = _cases()

"""The rules one at a time: what is rejected and why, and what the text must contain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.masks import resized_all
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.reduced import reduced
from mugraph.ir.transforms.resizing import resize_tensor
from mugraph.targets import TARGETS

from tests.engine.codegen.cases import REAL_SIZES
from tests.engine.codegen.graphs import (
    Graph,
    attention,
    batched,
    gated_mlp,
    gemm_chain,
    grouped_attention,
    layer_norm,
    nest,
    rms_norm_linear,
    softmax,
)  # fmt: skip


def _unsafe(name: str, *, over: str = "n", eps: bool = False, divide: bool = True) -> BlockGraph:
    """exp(x) in a graph that is not quite a softmax."""
    g = Graph(name, {"m": 32, "n": 64})
    p = g.exp("p", g.load("x", "m n"))
    total = g.sum("total", p, over)
    if eps:
        total = g.add("total_eps", total, g.const("eps", 1e-6))
    result = g.div("y", p, total) if divide else p
    g.store(result, "out", "m n")
    return g.build()


def _without_accumulator() -> BlockGraph:
    g = Graph("open", {"m": 32, "n": 64}, nest("n"))
    g.store(g.sum("total", g.load("x", "m n"), "n"), "out", "m")
    return g.build()


def _mixed_rows() -> BlockGraph:
    g = Graph("mixed_rows", {"m": 32, "n": 64, "k": 32})
    p = g.exp("p", g.load("x", "m n"))
    row = g.sum("row", p, "n")
    g.store(g.div("y", g.sum("all", row, "m"), g.sum("again", row, "m")), "out", "k")
    return g.build()


ROWS = Schedule((("m", 16),))


@pytest.mark.parametrize(
    ("block", "schedule", "reason"),
    [
        (gated_mlp(16, 128, 96), Schedule((("n", 24),), {"h": 32}), "no power of two"),
        (batched(4, 32, 64, 64), Schedule((("b", 2), ("n", 32)), {"k": 32}), "batch axis b"),
        (gated_mlp(16, 128, 64), Schedule((("h", 32), ("n", 32)), {"h": 32}), "both in the grid and looped"),
        (gated_mlp(16, 128, 64), Schedule((("n", 32),)), "no tile for the loop over h"),
        (gemm_chain(32, 32, 64, 32, loops=("k",)), Schedule((("n", 32),), {"k": 16}), "partitioned over the grid"),
        (softmax(32, 64), Schedule((("n", 32),)), "partitioned over the grid"),
        (_without_accumulator(), Schedule((), {"n": 16}), "accumulator over the loop n"),
        (layer_norm(2048, 8192), Schedule(()), "Triton allows 1048576"),
        (_unsafe("bare", divide=False), ROWS, "is no softmax"),
        (_unsafe("with_eps", eps=True), ROWS, "is no softmax"),
        (_mixed_rows(), Schedule(()), "different maxima|has axes"),
        (_unsafe("columns", over="m"), Schedule((("m", 16),)), "partitioned over the grid"),
        (grouped_attention(2, 2, 4, 8, 16, 40), Schedule((("s", 1),), {"kv": 16}), "batch axis kvh"),
    ],
)
def test_rejected_with_one_sentence(block: BlockGraph, schedule: Schedule, reason: str) -> None:
    with pytest.raises(Rejected, match=reason) as caught:
        lower(block, schedule)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_rejected_when_shared_memory_is_short() -> None:
    block, schedule = rms_norm_linear(16, 4096, 6144), Schedule((("n", 256),), {"h": 512}, num_stages=4)
    assert lower(block, schedule).grid == (24, 1, 1)
    with pytest.raises(Rejected, match="shared memory"):
        lower(block, schedule, target=TARGETS["sm_90"])


def test_outputs_must_be_contiguous() -> None:
    block = gated_mlp(16, 64, 64)
    *inputs, out = block.tensors
    with pytest.raises(Rejected, match="not contiguous"):
        lower(replace(block, tensors=(*inputs, replace(out, strides=(1, 16)))), Schedule((("n", 32),), {"h": 32}))


def test_swap_reverses_the_product() -> None:
    schedule = Schedule((("n", 64),), {"h": 64})
    straight = lower(gated_mlp(4, 256, 256), schedule).jit
    swapped = lower(gated_mlp(4, 256, 256), replace(schedule, swap=True)).jit
    assert "tl.dot(x, w_gate, gate)" in straight
    assert "tl.dot(w_gate, x, gate)" in swapped
    assert "tl.trans" not in straight + swapped


def test_offsets_are_64_bit_only_where_a_tensor_needs_them() -> None:
    schedule = Schedule((("n", 64), ("m", 64)), {"h": 64})
    assert "int64" not in lower(gated_mlp(4096, 4096, 4096), schedule).jit
    far = lower(gated_mlp(2**20, 4096, 4096), schedule).jit
    assert "x_ptr + offs_m.to(tl.int64)[:, None] * H" in far
    assert "w_gate_ptr + offs_h[:, None]" in far


def test_more_than_three_grid_axes_share_x() -> None:
    block = grouped_attention(2, 3, 4, 32, 16, 64)
    source = lower(block, Schedule((("q", 16), ("group", 1), ("kvh", 1), ("s", 1)), {"kv": 32}))
    assert source.grid == (2 * 4 * 3 * 2, 1, 1)
    assert "pid_q = pid % tl.cdiv(Q, BLOCK_Q)" in source.jit


def test_a_long_second_grid_axis_moves_to_x() -> None:
    source = lower(layer_norm(70_000, 64), Schedule((("h", 64), ("m", 1))))
    assert source.grid == (70_000, 1, 1)
    block = batched(70_000, 16, 32, 64)
    assert lower(block, Schedule((("n", 32), ("b", 1)), {"k": 32})).grid == (140_000, 1, 1)


def test_only_what_one_block_reads_once_leaves_the_cache_first() -> None:
    lines = lower(rms_norm_linear(16, 4096, 6144), Schedule((("n", 64),), {"h": 128})).jit.splitlines()
    assert [line.split()[0] for line in lines if "evict_first" in line] == ["w"]
    chain = lower(*REAL_SIZES["gemm_chain"]).jit  # `a` is read again in every iteration over n
    assert "evict" not in chain


def test_one_pass_over_the_loop_serves_all_accumulators() -> None:
    assert lower(attention(2, 32, 128, 32), Schedule((("q", 16), ("b", 1)), {"kv": 32})).jit.count("for kv0 in") == 1
    assert lower(layer_norm(4, 512, looped=True), Schedule((("m", 1),), {"h": 128})).jit.count("for h0 in") == 3


def test_loop_invariant_values_are_computed_before_the_loop() -> None:
    jit = lower(attention(2, 32, 128, 32, norm=True), Schedule((("q", 16), ("b", 1)), {"kv": 32})).jit
    before, _, after = jit.partition("for kv0 in")
    assert "query * tl.rsqrt(" in before
    assert "key * tl.rsqrt(" in after


def test_masks_only_where_an_axis_is_uneven() -> None:
    schedule = Schedule((("n", 64),), {"h": 64})
    assert "mask" not in lower(gated_mlp(16, 256, 256), schedule).jit
    uneven = lower(gated_mlp(16, 250, 256), schedule).jit
    assert "mask_h" in uneven
    assert "mask_n" not in uneven
    assert "tl.where" not in uneven  # loads put 0 beyond the end, which a product ignores


def test_accumulating_an_invariant_counts_the_iterations() -> None:
    g = Graph("count", {"m": 32, "h": 100}, (Loop("h"),), "f32")
    x, y = g.load("x", "m"), g.load("y", "m h")
    total = g.add("t", g.accum("again", x, "h"), g.accum("ys", g.sum("part", y, "h"), "h"))
    g.store(total, "out", "m")
    assert "x * 4.0" in lower(g.build(), Schedule((("m", 16),), {"h": 32})).jit
    assert "4.0" not in lower(g.build(), Schedule((("m", 16),), {"h": 128})).jit


@pytest.mark.parametrize("name", REAL_SIZES)
def test_reduced_sizes_keep_the_structure(name: str) -> None:
    block, schedule = REAL_SIZES[name]
    small, small_schedule = reduced(block, schedule)
    tiles = {**dict(schedule.grid), **schedule.loops}
    small_tiles = {**dict(small_schedule.grid), **small_schedule.loops}
    for axis, tile in tiles.items():
        count, small_count = -(-block.sizes[axis] // tile), -(-small.sizes[axis] // small_tiles[axis])
        # A window keeps something to read: with few taps, its positions are more.
        windowed = any(axis in tensor.windowed for tensor in block.tensors)
        assert small_count == min(count, 2) or (windowed and small_count <= 4)
        if count > 1:
            assert windowed or bool(block.sizes[axis] % tile) == bool(small.sizes[axis] % small_tiles[axis])
        assert small_tiles[axis] >= min(tile, 16)
    assert all(size > 1 for axis, size in small.sizes.items() if block.sizes[axis] > 1)
    assert sum(_elements(t, small) for t in small.tensors) < 200_000
    assert small.ops == resized_all(block.ops, block.sizes, small.sizes)


def test_reduced_sizes_keep_one_layout_with_the_program() -> None:
    """Queries and keys cut out of one product [rows, (part, head, width)]: a gap between rows, none between heads."""
    block, schedule = REAL_SIZES["attention"]
    old = block.sizes
    tensors = tuple(
        replace(t, strides=tuple(stride * 3 if stride >= t.strides[0] else stride for stride in t.strides))
        for t in block.tensors
    )
    small, _ = reduced(replace(block, tensors=tensors), schedule)
    assert small.sizes != old
    assert small.tensors == tuple(resize_tensor(tensor, old, small.sizes) for tensor in tensors)


def _elements(tensor: Tensor, block: BlockGraph) -> int:
    total = 1
    for axis in tensor.axes:
        total *= block.sizes[axis]
    return total

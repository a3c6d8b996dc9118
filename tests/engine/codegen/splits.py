"""Block graphs of graphs.py cut in two, small enough for the interpreter."""

from __future__ import annotations

from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.splits import cuts

import tests.engine.codegen.graphs as g
import tests.engine.codegen.graphs_maxima as gm

Kernels = list[tuple[BlockGraph, Schedule]]


def split(
    block: BlockGraph, axis: str, count: int, first: Schedule, second: Schedule, *, looped: bool = True
) -> Kernels:
    """The topology with the loop over `axis` in `count` parts. The first schedule's loops are those of the part."""
    (cut,) = (cut for cut in cuts(block) if cut.axis == axis)
    a, b = cut.at(count, looped=looped)
    return [(a, first), (b, second)]


def program_of(block: BlockGraph) -> TensorProgram:
    """What a topology computes: an accumulator over all of a loop is what it adds up."""
    alias: dict[str, str] = {}
    ops = list[g.Op]()
    for op in block.ops:
        inputs = tuple(alias.get(name, name) for name in op.inputs)
        if op.kind is Kind.ACCUM:
            alias[op.name] = inputs[0]
        elif op.kind is not Kind.STORE:
            ops.append(g.Op(op.name, op.kind, inputs, op.axes, op.over, op.tensor, op.value, op.fn, op.f32))
    stored = {alias.get(op.inputs[0], op.inputs[0]): op.tensor for op in block.ops if op.kind is Kind.STORE}
    outputs = {value: block.tensor(name) for value, name in stored.items()}
    return TensorProgram(block.name, block.sizes, block.inputs, tuple(ops), outputs)


def grid(*axes: tuple[str, int], swap: bool = False, **loops: int) -> Schedule:
    return Schedule(axes, loops, swap=swap)


_ROWS = grid(("q", 16), ("kv_split", 1), ("b", 1), kv_part=16)
_WHOLE = grid(("kv_split", 1), ("q", 16), ("b", 1))
_COMBINE = grid(("q", 4), ("b", 1))
_NORM = grid(("n", 32), ("h_split", 1), h_part=16)
_COLUMNS = grid(("n", 32))

CASES: dict[str, tuple[BlockGraph, Kernels]] = {}


def _case(
    name: str, block: BlockGraph, axis: str, count: int, first: Schedule, second: Schedule, *, looped: bool = True
) -> None:
    CASES[name] = block, split(block, axis, count, first, second, looped=looped)


_case("attention", g.attention(2, 32, 128, 32), "kv", 4, _ROWS, _COMBINE)
_case("attention_whole_parts", g.attention(2, 32, 128, 32), "kv", 4, _WHOLE, _COMBINE, looped=False)
_case("attention_tail", g.attention(2, 20, 96, 24), "kv", 2, grid(("q", 16), ("kv_split", 1), ("b", 1), kv_part=32),
      grid(("q", 4), ("e", 16), ("b", 1)))  # fmt: skip
_case("attention_3_parts", g.attention(2, 16, 96, 16), "kv", 3, _ROWS, _COMBINE)
_case("attention_1_query", g.attention(2, 1, 128, 32), "kv", 4, _WHOLE, _COMBINE, looped=False)
_case("attention_columns", g.attention(1, 16, 64, 32), "kv", 2, grid(("e", 16), ("q", 16), ("kv_split", 1), kv_part=16),
      _COMBINE)  # fmt: skip
_case("attention_normed", g.attention(2, 16, 128, 32, norm=True), "kv", 4, _ROWS, _COMBINE)
_case("attention_mask", g.attention(1, 16, 128, 32, bias=True), "kv", 4, _ROWS, _COMBINE)
_case("attention_negative_scale", g.attention(1, 16, 64, 16, scale=-0.5), "kv", 2, _ROWS, _COMBINE)
_case("attention_bf16", g.attention(2, 16, 64, 16, dtype="bf16"), "kv", 2, _ROWS, _COMBINE)
_case("attention_f32", g.attention(2, 16, 64, 16, dtype="f32"), "kv", 2, _ROWS, _COMBINE)
_case("attention_swapped", g.attention(2, 16, 128, 32), "kv", 4, grid(
    ("q", 16), ("kv_split", 1), ("b", 1), swap=True, kv_part=16), _COMBINE)  # fmt: skip
_case("grouped_attention", g.grouped_attention(2, 2, 4, 3, 16, 64), "kv", 2,
      grid(("kv_split", 1), ("s", 1), ("kvh", 1), kv_part=16),
      grid(("q", 1), ("group", 1), ("s", 1), ("kvh", 1)))  # fmt: skip
_case("rms_norm_linear", g.rms_norm_linear(16, 128, 64), "h", 4, _NORM, _COLUMNS)
_case("rms_norm_linear_tail", g.rms_norm_linear(3, 96, 80), "h", 2, _NORM, _COLUMNS)
_case("gated_mlp", g.gated_mlp(8, 128, 64), "h", 4, _NORM, _COLUMNS)
_case("lora", g.lora(16, 128, 64, 16), "h", 2, _NORM, _COLUMNS)
_case("batched", g.batched(3, 20, 64, 40), "k", 2, grid(("n", 32), ("m", 16), ("k_split", 1), ("b", 1), k_part=16),
      grid(("n", 8), ("m", 4), ("b", 1)))  # fmt: skip
_case("gemm_chain_nest", g.gemm_chain(32, 64, 96, 48, loops=("n", "k")), "n", 3,
      grid(("m", 16), ("n_split", 1), n_part=16, k=32), grid(("m", 16)))  # fmt: skip
_case("scaled_linear", gm.scaled_linear(16, 120, 64), "h", 4, _NORM, _COLUMNS)
_case("row_sums", g.mixed_types(16, 64, 64), "k", 2, grid(("n", 32), ("k_split", 1), k_part=16), grid(("m", 16)))


REAL_SIZES: dict[str, Kernels] = {
    "attention": split(
        g.attention(2, 256, 4096, 64), "kv", 16, grid(("kv_split", 1), ("q", 64), ("b", 1), kv_part=64), _COMBINE
    ),
    "attention_decode": split(
        g.attention(2, 8, 8192, 128), "kv", 64, grid(("kv_split", 1), ("b", 1), swap=True), grid(("q", 1), ("b", 1)),
        looped=False,
    ),
    "rms_norm_linear": split(
        g.rms_norm_linear(2, 4096, 6144), "h", 4, grid(("n", 64), ("h_split", 1), swap=True, h_part=256), _COLUMNS
    ),
    "lora": split(
        g.lora(16, 4096, 4096, 16), "h", 4, grid(("n", 64), ("h_split", 1), swap=True, h_part=128), _COLUMNS
    ),
}  # fmt: skip


def source(name: str) -> KernelSource:
    return lower_kernels(CASES[name][1])

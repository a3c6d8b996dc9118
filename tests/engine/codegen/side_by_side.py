"""Kernels of graphs.py side by side in one grid, small enough for the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.one_grid import with_one_grids
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.units.united import united

import tests.engine.codegen.graphs as g
from tests.engine.codegen.cases import CASES as ONE
from tests.engine.codegen.splits import program_of

Kernels = Sequence[tuple[BlockGraph, Schedule]]


@dataclass(frozen=True)
class Joined:
    program: TensorProgram
    kernels: Kernels
    source: KernelSource


def joined(kernels: Kernels, shared: Sequence[str] = ()) -> Joined:
    """shared: tensors that are the same in all of the kernels"""
    values: dict[tuple[int, str], int] = {}

    def value(at: int, name: str) -> int:
        return values.setdefault((-1 if name in shared else at, name), len(values))

    units: list[SearchUnit] = []
    for at, (block, _) in enumerate(kernels):
        inputs = {tensor.name: value(at, tensor.name) for tensor in block.inputs}
        outputs = {tensor.name: value(at, tensor.name) for tensor in block.outputs}
        units.append(SearchUnit(program_of(block), inputs, outputs, ()))
    unit, renamings = united(units, kernels[0][0].name)
    names = [block.name if at == 0 else f"{block.name}_{at + 1}" for at, (block, _) in enumerate(kernels)]
    own = [
        (replace(renaming.block(block), name=name), replace(renaming.schedule(schedule), num_warps=4, num_stages=2))
        for (block, schedule), renaming, name in zip(kernels, renamings, names, strict=True)
    ]
    source = with_one_grids(lower_kernels(own, program=unit.program), [names])
    return Joined(unit.program, own, source)


def _projection(name: str, n: int, tile: int, *, norm: bool = False, act: str = "") -> tuple[BlockGraph, Schedule]:
    """Of one row: `x @ w.T`, perhaps of a normed x, perhaps with an activation."""
    axes = g.nest("k")
    graph = g.Graph(name, {"m": 1, "k": 96, "n": n}, axes)
    x, w = graph.load("x", "m k"), graph.load("w", "n k")
    acc = graph.accum("acc", graph.dot("part", x, w, "k"), "k")
    if norm:
        ss = graph.accum("ss", graph.sum("ss_part", graph.mul("squares", x, x), "k"), "k")
        acc = graph.div("normed", acc, graph.sqrt("rms", graph.add("eps_ss", ss, graph.const("eps", 1e-6))))
    graph.store(graph.unary("act", act, acc) if act else acc, "out", "m n")
    return graph.build(), Schedule((("n", tile),), {"k": 32})


def _both(one: str, other: str) -> list[tuple[BlockGraph, Schedule]]:
    return [ONE[one], ONE[other]]


CASES: dict[str, tuple[Kernels, tuple[str, ...]]] = {
    "projections": (
        [
            _projection("q", 64, 8, norm=True),
            _projection("k", 24, 8, act="silu"),
            _projection("v", 20, 8),
        ],
        ("x",),
    ),
    "grids": (_both("batched", "rms_norm_linear_m_grid"), ()),
    "norms": (_both("layer_norm", "softmax_looped"), ()),
    "product_and_elements": (_both("rms_norm_linear_tail", "activations"), ()),
    "scalars": (_both("rms_norm_linear_m_scalar", "grouped_attention_group_scalar"), ()),
    "one_block": (_both("tile_sum", "lora_rank_8_tail"), ()),
    "shared_grid": (_both("grouped_attention_group_scalar", "gated_mlp"), ()),
}


def case(name: str) -> Joined:
    return joined(*CASES[name])

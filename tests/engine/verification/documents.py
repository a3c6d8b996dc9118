"""μGraphs of one kernel and of two, as documents."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind

from tests.engine.verification.graphs import Builder, Case, rms_norm_linear, tensor


def one_kernel(case: Case, schedule: Schedule) -> MuGraph:
    kernel = GraphKernel(case.block.name, case.block, schedule)
    return MuGraph(
        case.block.name,
        case.block.sizes,
        case.block.tensors,
        tuple(t.name for t in case.block.inputs),
        tuple(t.name for t in case.block.outputs),
        (kernel,),
    )


def two_kernels(forget: bool = False) -> MuGraph:
    """RMSNorm+Linear with the reduction over h split in two over the grid, and a second kernel that adds the parts."""
    case = rms_norm_linear()
    sizes = {"b": 16, "h": 1024, "n": 4096, "part": 4, "hp": 256}
    split = (("part", "hp"),)
    x = replace(case.program.tensor("x"), dims=(("b",), *split))
    g = replace(case.program.tensor("g"), dims=split)
    w = replace(case.program.tensor("w"), dims=(("n",), *split))
    acc, ss = tensor("acc", "part b n", sizes, "f32"), tensor("ss", "part b", sizes, "f32")
    b = Builder()
    b.load("xv", x), b.load("gv", g), b.load("wv", w)
    b.ew("xg", Kind.MUL, "xv", "gv"), b.reduce("d", Kind.DOT, "xg", "wv", over="hp"), b.accum("da", "d", "hp")
    b.ew("sq", Kind.MUL, "xv", "xv"), b.reduce("s", Kind.SUM, "sq", over="hp"), b.accum("sa", "s", "hp")
    b.store("da", acc), b.store("sa", ss)
    first = BlockGraph("parts", _only(sizes, "part b n hp"), (x, g, w, acc, ss), tuple(b.ops), (Loop("hp"),))

    z = case.program.outputs["out"]
    c = Builder()
    c.load("acc_v", acc), c.load("ss_v", ss)
    c.reduce("all", Kind.SUM, "acc_v", over="part"), c.reduce("ssum", Kind.SUM, "ss_v", over="part")
    c.const("inv_h", 1 / 1024), c.ew("mean", Kind.MUL, "ssum", "inv_h")
    c.const("eps", 1e-6), c.ew("shifted", Kind.ADD, "mean", "eps"), c.ew("rms", Kind.SQRT, "shifted")
    c.ew("out", Kind.DIV, "all", "shifted" if forget else "rms"), c.store("out", z)
    second = BlockGraph("combine", _only(sizes, "part b n"), (acc, ss, z), tuple(c.ops))
    kernels = (
        GraphKernel("parts", first, Schedule((("n", 64), ("part", 1), ("b", 16)), {"hp": 64})),
        GraphKernel("combine", second, Schedule((("n", 64), ("b", 16)))),
    )
    return MuGraph("split", sizes, (x, g, w, acc, ss, z), ("x", "g", "w"), ("z",), kernels)


def _only(sizes: dict[str, int], axes: str) -> dict[str, int]:
    return {axis: sizes[axis] for axis in axes.split()}

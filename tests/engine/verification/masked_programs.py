"""Programs and block graphs with masks."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides

SIZES = {"s": 256, "t": 512, "d": 64, "e": 64}


def tensor(name: str, *axes: str) -> Tensor:
    dims = tuple((axis,) for axis in axes)
    return Tensor(name, dims, contiguous_strides(dims, SIZES), "f16", name)


TENSORS = (tensor("q", "s", "d"), tensor("k", "t", "d"), tensor("v", "t", "e"))
OUT = tensor("out", "s", "e")
LOADS = tuple(Op(t.name, Kind.LOAD, axes=tuple(sorted(t.axes)), tensor=t.name) for t in TENSORS)


def mask(diagonal: int) -> Op:
    return Op("mask", Kind.MASK, axes=("s", "t"), value=float(diagonal), rows=("s",), columns=("t",))


def program(diagonal: int) -> TensorProgram:
    ops = (
        *LOADS,
        mask(diagonal),
        Op("scores", Kind.DOT, ("q", "k"), ("s", "t"), ("d",)),
        Op("p", Kind.EXP, ("scores",), ("s", "t")),
        Op("kept", Kind.MUL, ("p", "mask"), ("s", "t")),
        Op("length", Kind.SUM, ("kept",), ("s",), ("t",)),
        Op("weights", Kind.DIV, ("kept", "length"), ("s", "t")),
        Op("y", Kind.DOT, ("weights", "v"), ("e", "s"), ("t",)),
    )
    return TensorProgram("causal", SIZES, TENSORS, ops, {"y": OUT})


def looped(diagonal: int) -> BlockGraph:
    """FlashAttention's form."""
    ops = (
        *LOADS,
        mask(diagonal),
        Op("scores", Kind.DOT, ("q", "k"), ("s", "t"), ("d",)),
        Op("p", Kind.EXP, ("scores",), ("s", "t")),
        Op("kept", Kind.MUL, ("p", "mask"), ("s", "t")),
        Op("part", Kind.SUM, ("kept",), ("s",), ("t",)),
        Op("length", Kind.ACCUM, ("part",), ("s",), ("t",)),
        Op("acc_part", Kind.DOT, ("kept", "v"), ("e", "s"), ("t",)),
        Op("acc", Kind.ACCUM, ("acc_part",), ("e", "s"), ("t",)),
        Op("y", Kind.DIV, ("acc", "length"), ("e", "s")),
        Op("store", Kind.STORE, ("y",), ("e", "s"), tensor="out"),
    )
    return BlockGraph("causal", SIZES, (*TENSORS, OUT), ops, (Loop("t"),))


def changed(block: BlockGraph, name: str, **fields: object) -> BlockGraph:
    ops = tuple(replace(op, **fields) if op.name == name else op for op in block.ops)  # type: ignore[arg-type]
    return replace(block, ops=ops)


def windowed(graph: TensorProgram | BlockGraph, window: Op) -> TensorProgram | BlockGraph:
    """With a second mask between the exponentials and the first one."""
    ops: list[Op] = []
    for op in graph.ops:
        if op.name == "kept":
            ops += [window, Op("in_window", Kind.MUL, ("p", "window"), ("s", "t"))]
            op = replace(op, inputs=("in_window", "mask"))
        ops.append(op)
    return replace(graph, ops=tuple(ops))

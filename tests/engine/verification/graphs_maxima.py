"""A program with maxima and block graphs for it: x W over the largest magnitude of x's row, but at least 0.5."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import LARGEST, Kind, Op
from mugraph.ir.program import TensorProgram

from tests.engine.verification.graphs import Builder, Case, tensor


def scaled_linear() -> Case:
    """A product and a maximum in one loop, the division after it."""
    sizes = {"m": 64, "h": 1024, "n": 512}
    x, w, out = tensor("x", "m h", sizes), tensor("w", "h n", sizes), tensor("out", "m n", sizes)
    p = _magnitudes()
    p.reduce("top", Kind.AMAX, "magnitude", over="h"), p.const("least", 0.5)
    p.ew("limited", Kind.MAX, "top", "least"), p.ew("scaled", Kind.DIV, "x", "limited")
    p.reduce("y", Kind.DOT, "scaled", "w", over="h")
    program = TensorProgram("scaled_linear", sizes, (x, w), tuple(p.ops), {"y": out})
    b = _magnitudes()
    b.reduce("top_part", Kind.AMAX, "magnitude", over="h"), b.accum("top", "top_part", "h")
    b.reduce("acc_part", Kind.DOT, "x", "w", over="h"), b.accum("acc", "acc_part", "h")
    b.const("least", 0.5), b.ew("limited", Kind.MAX, "top", "least"), b.ew("y", Kind.DIV, "acc", "limited")
    b.store("y", out)
    ops = tuple(replace(op, fn=LARGEST) if op.name == "top" else op for op in b.ops)
    return Case(program, BlockGraph("scaled_linear", sizes, (x, w, out), ops, (Loop("h"),)))


def late_maximum() -> Case:
    """As above, with the maxima kept as a tile through the loop: AMAX(ACCUM(x))."""
    case = scaled_linear()
    ops: list[Op] = []
    for op in case.block.ops:
        if op.name == "top_part":
            ops.append(Op("top_tile", Kind.ACCUM, ("magnitude",), ("h", "m"), ("h",), fn=LARGEST))
        elif op.name == "top":
            ops.append(Op("top", Kind.AMAX, ("top_tile",), ("m",), ("h",)))
        else:
            ops.append(op)
    return Case(case.program, replace(case.block, ops=tuple(ops)))


def _magnitudes() -> Builder:
    b = Builder()
    sizes = {"m": 64, "h": 1024, "n": 512}
    b.load("x", tensor("x", "m h", sizes)), b.load("w", tensor("w", "h n", sizes))
    b.const("minus", -1.0), b.ew("negative", Kind.MUL, "x", "minus"), b.ew("magnitude", Kind.MAX, "x", "negative")
    return b

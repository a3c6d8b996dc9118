"""The program of the ablation: RMSNorm followed by a linear layer, with the sizes of Mirage's Figure 3a."""

from __future__ import annotations

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides

ROWS, HIDDEN, COLUMNS = 16, 1024, 4096


def rmsnorm_linear() -> TensorProgram:
    """(x g / sqrt(sum(x x) / HIDDEN)) w, seven operators."""
    sizes = {"m": ROWS, "h": HIDDEN, "n": COLUMNS}

    def tensor(name: str, *axes: str) -> Tensor:
        dims = tuple((axis,) for axis in axes)
        return Tensor(name, dims, contiguous_strides(dims, sizes), "f16", name)

    def load(name: str, *axes: str) -> Op:
        return Op(name, Kind.LOAD, axes=tuple(sorted(axes)), tensor=name)

    ops = (
        load("x", "m", "h"),
        load("g", "h"),
        load("w", "h", "n"),
        Op("scale", Kind.CONST, value=1 / HIDDEN),
        Op("square", Kind.MUL, ("x", "x"), ("h", "m")),
        Op("total", Kind.SUM, ("square",), ("m",), ("h",)),
        Op("mean", Kind.MUL, ("total", "scale"), ("m",)),
        Op("root", Kind.SQRT, ("mean",), ("m",)),
        Op("scaled", Kind.MUL, ("x", "g"), ("h", "m")),
        Op("normed", Kind.DIV, ("scaled", "root"), ("h", "m")),
        Op("y", Kind.DOT, ("normed", "w"), ("m", "n"), ("h",)),
    )
    inputs = (tensor("x", "m", "h"), tensor("g", "h"), tensor("w", "h", "n"))
    return TensorProgram("rmsnorm_linear", sizes, inputs, ops, {"y": tensor("out", "m", "n")})

"""A kernel graph whose second kernel reads what the first writes along the other axis: the sums of columns."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides

Kernels = list[tuple[BlockGraph, Schedule]]


def column_sums(m: int, n: int, columns: int) -> tuple[TensorProgram, Kernels]:
    """sum(x * x, 0). columns: that a block of the second kernel takes"""
    sizes = {"m": m, "n": n}

    def tensor(name: str, *axes: str, source: str = "") -> Tensor:
        dims = tuple((axis,) for axis in axes)
        return Tensor(name, dims, contiguous_strides(dims, sizes), "f16", source)

    x, h, y = tensor("x", "m", "n", source="x"), tensor("h", "m", "n"), tensor("y", "n", source="y")
    load = Op("x", Kind.LOAD, (), ("m", "n"), tensor="x")
    square = Op("h", Kind.MUL, ("x", "x"), ("m", "n"))
    total = Op("y", Kind.SUM, ("h",), ("n",), ("m",))
    program = TensorProgram("column_sums", sizes, (x,), (load, square, total), {"y": y})
    first = BlockGraph(
        "squares", sizes, (x, h), (load, square, Op("store_h", Kind.STORE, ("h",), ("m", "n"), tensor="h"))
    )
    again = Op("h", Kind.LOAD, (), ("m", "n"), tensor="h")
    second = BlockGraph("sums", sizes, (h, y), (again, total, Op("store_y", Kind.STORE, ("y",), ("n",), tensor="y")))
    return program, [(first, Schedule((("n", 32), ("m", 32)))), (second, Schedule((("n", columns),)))]

"""A kernel graph of a generated kernel and a library's: RMSNorm and a product."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search.schedules.splits import cuts

Kernels = list[tuple[BlockGraph, Schedule]]
LIBRARY = Schedule((), library=True)


def tensor_of(name: str, *axes: str, sizes: dict[str, int]) -> Tensor:
    dims = tuple((axis,) for axis in axes)
    return Tensor(name, dims, contiguous_strides(dims, sizes), "f16", name)


def an_op(name: str, kind: Kind, inputs: str = "", axes: str = "", **more: object) -> Op:
    return replace(Op(name, kind, tuple(inputs.split()), tuple(sorted(axes))), **more)


def normed(m: int = 32, k: int = 64, n: int = 64) -> tuple[TensorProgram, Kernels]:
    """RMSNorm and MatMul: the norm generated, the product the library's."""
    sizes = {"m": m, "k": k, "n": n}
    x, w, y = (tensor_of(name, *axes, sizes=sizes) for name, axes in (("x", "mk"), ("w", "kn"), ("y", "mn")))
    h = replace(tensor_of("h", "m", "k", sizes=sizes), source="")
    norm = (
        an_op("x", Kind.LOAD, axes="mk", tensor="x"),
        an_op("square", Kind.MUL, "x x", "mk", f32=True),
        an_op("total", Kind.SUM, "square", "m", over=("k",), f32=True),
        an_op("scale", Kind.CONST, value=1 / k),
        an_op("mean", Kind.MUL, "total scale", "m", f32=True),
        an_op("eps", Kind.CONST, value=1e-6),
        an_op("shifted", Kind.ADD, "mean eps", "m", f32=True),
        an_op("root", Kind.SQRT, "shifted", "m", f32=True),
        an_op("h", Kind.DIV, "x root", "mk"),
    )
    w_load = an_op("w", Kind.LOAD, axes="kn", tensor="w")
    product = an_op("y", Kind.DOT, "h w", "mn", over=("k",))
    program = TensorProgram("normed", sizes, (x, w), (*norm, w_load, product), {"y": y})
    first = BlockGraph("normed", {"m": m, "k": k}, (x, h), (*norm, an_op("store_h", Kind.STORE, "h", "mk", tensor="h")))
    ops = (
        an_op("h", Kind.LOAD, axes="mk", tensor="h"),
        w_load,
        product,
        an_op("store_y", Kind.STORE, "y", "mn", tensor="y"),
    )
    second = BlockGraph("normed_y", sizes, (h, w, y), ops)
    return program, [(first, Schedule((("m", 4),))), (second, LIBRARY)]


def split_product(m: int = 32, k: int = 64, n: int = 64) -> tuple[TensorProgram, Kernels]:
    """The same with the product split over the grid: three kernels, k whole in one and in parts in others."""
    program, [first, (block, _)] = normed(m, k, n)
    load, w, product, store = block.ops
    part = replace(product, name="y_part")
    total = Op("y", Kind.ACCUM, ("y_part",), product.axes, ("k",))
    looped = replace(block, ops=(load, w, part, total, store), loops=(Loop("k"),))
    (cut,) = cuts(looped)
    one, two = cut.at(2)
    return program, [
        first,
        (one, Schedule((("n", 32), ("m", 16), ("k_split", 1)), {"k_part": 16})),
        (two, Schedule((("n", 32), ("m", 4)))),
    ]

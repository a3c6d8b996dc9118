"""Block graphs with maxima: of two values, along an axis, through a loop."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import DType, Tensor
from mugraph.ir.windows import Window

from tests.engine.codegen.graphs import Graph, nest


def scaled_linear(m: int, h: int, n: int, *, dtype: DType = "f16") -> BlockGraph:
    """x @ w over the largest magnitude of x's row, but at least 0.5: a product and a maximum in one loop."""
    g = Graph("scaled_linear", {"m": m, "h": h, "n": n}, nest("h"), dtype)
    x, w = g.load("x", "m h"), g.load("w", "h n")
    magnitude = g.do(Kind.MAX, "magnitude", x, g.mul("negative", x, g.const("minus", -1.0)))
    top = g.accum("top", g.amax("top_part", magnitude, "h"), "h", largest=True)
    acc = g.accum("acc", g.dot("acc_part", x, w, "h"), "h")
    g.store(g.div("y", acc, g.do(Kind.MAX, "limited", top, g.const("least", 0.5))), "out", "m n")
    return g.build()


def maxout(m: int, h: int, n: int) -> BlockGraph:
    """The larger of two products that share a loop, but at most 1.5: -max(-y, -1.5)."""
    g = Graph("maxout", {"m": m, "h": h, "n": n}, nest("h"))
    x, w, v = g.load("x", "m h"), g.load("w", "h n"), g.load("v", "h n")
    a = g.accum("a", g.dot("a_part", x, w, "h"), "h")
    b = g.accum("b", g.dot("b_part", x, v, "h"), "h")
    minus = g.const("minus", -1.0)
    negative = g.mul("negative", g.do(Kind.MAX, "larger", a, b), minus)
    g.store(g.mul("y", g.do(Kind.MAX, "limited", negative, g.const("most", -1.5)), minus), "out", "m n")
    return g.build()


def pooled(
    extents: tuple[int, int], *, taps: tuple[int, int], stride: int, pad: int, dilation: int = 1, loops: str = "",
    positions: tuple[int, int] | None = None,
) -> BlockGraph:  # fmt: skip
    """Maxima over windows that reach beyond both ends of an image, in the last dimension as far as there is an element
    (ceil_mode). positions: fewer than there are"""
    sizes = {"c": 3, "r": taps[0], "s": taps[1]}
    windows: list[Window] = []
    for dim, (axis, extent, tap) in enumerate(zip("pq", extents, taps, strict=True), 1):
        reach = extent + 2 * pad - dilation * (tap - 1) - 1
        more = dim == 2 and 0 <= (reach // stride + 1) * stride - pad < extent
        sizes[axis] = positions[dim - 1] if positions else reach // stride + 1 + more
        read = (sizes[axis] - 1) * stride + (tap - 1) * dilation + 1
        windows.append(Window(dim, 1, stride, dilation, pad, extent + pad - read, edge=True))
    g = Graph("pooled", sizes, nest(*loops.split()), "f32")
    dims = (("c",), ("p", "r"), ("q", "s"))
    g.tensors.append(Tensor("x", dims, (extents[0] * extents[1], extents[1], 1), "f32", windows=tuple(windows)))
    below = g.add("below", g._add(Op("x", Kind.LOAD, axes=tuple(sorted("cpqrs")), tensor="x")), g.const("far", -9.0))
    largest = g.amax("largest_part", below, "r s")
    for loop in loops.split():
        largest = g.accum("largest", largest, loop, largest=True)
    g.store(largest, "out", "c p q")
    return g.build()


def tile_max(m: int, h: int) -> BlockGraph:
    """AMAX(ACCUM(x)): the tile's maxima are kept through the loop, and the largest of them taken after it."""
    g = Graph("tile_max", {"m": m, "h": h}, nest("h"), "f32")
    below = g.add("below", g.load("x", "m h"), g.const("five", -5.0))
    g.store(g.amax("largest", g.accum("tile", below, "h", largest=True), "h"), "out", "m")
    return g.build()


def holes(m: int, h: int) -> BlockGraph:
    """Maxima of values with NaN and infinities among them, of pairs and of rows (an input `holes` has them)."""
    g = Graph("holes", {"m": m, "h": h}, nest("h"), "f32")
    x, y = g.load("holes", "m h"), g.load("y", "m h")
    larger = g.do(Kind.MAX, "larger", x, y)
    g.store(g.accum("rows", g.amax("rows_part", larger, "h"), "h", largest=True), "out", "m")
    return g.build()


def value_range(m: int, h: int) -> BlockGraph:
    """x less its row's least, over the row's range: padded lanes are no part of a maximum."""
    g = Graph("value_range", {"m": m, "h": h}, (), "f32")
    x, minus = g.add("shifted", g.load("x", "m h"), g.const("far", 7.0)), g.const("minus", -1.0)
    top, low = g.amax("top", x, "h"), g.amax("low", g.mul("negative", x, minus), "h")
    g.store(g.div("y", g.add("above", x, low), g.add("range", top, low)), "out", "m h")
    return g.build()


def largest_sum(m: int, h: int, k: int) -> BlockGraph:
    """The largest of the sums along k: an accumulator of another kind does not go on with that of the inner loop."""
    g = Graph("largest_sum", {"m": m, "h": h, "k": k}, nest("h", "k"), "f32")
    sums = g.accum("sums", g.sum("sums_part", g.load("x", "m h k"), "k"), "k")
    g.store(g.amax("largest", g.accum("tile", sums, "h", largest=True), "h"), "out", "m")
    return g.build()

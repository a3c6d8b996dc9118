"""Block graphs built by hand: the figures of the papers and the corners of the lowering rules."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import LARGEST, Kind, Op
from mugraph.ir.tensors import Dims, DType, Tensor, contiguous_strides
from mugraph.ir.windows import Window


class Graph:
    """Writes a block graph one operator at a time; axes follow from the operands."""

    def __init__(self, name: str, sizes: dict[str, int], loops: tuple[Loop, ...] = (), dtype: DType = "f16") -> None:
        self.name, self.sizes, self.loops, self.dtype = name, sizes, loops, dtype
        self.tensors: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.ops: list[Op] = []
        self.axes: dict[str, tuple[str, ...]] = {}

    def _add(self, op: Op) -> str:
        self.ops.append(op)
        self.axes[op.name] = op.axes
        return op.name

    def _tensor(self, name: str, dims: Dims, strides: tuple[int, ...] | None, dtype: DType | None) -> Tensor:
        return Tensor(name, dims, strides or contiguous_strides(dims, self.sizes), dtype or self.dtype)

    def load(
        self, name: str, dims: str | Dims, *, strides: tuple[int, ...] | None = None, dtype: DType | None = None
    ) -> str:
        """dims: "m h" for one axis a dimension, or the tuple of tuples."""
        tensor = self._tensor(name, _dims(dims), strides, dtype)
        self.tensors.append(tensor)
        return self._add(Op(name, Kind.LOAD, axes=tuple(sorted(tensor.axes)), tensor=name))

    def const(self, name: str, value: float) -> str:
        return self._add(Op(name, Kind.CONST, value=value))

    def do(self, kind: Kind, name: str, *inputs: str, fn: str = "") -> str:
        axes = tuple(sorted({axis for value in inputs for axis in self.axes[value]}))
        return self._add(Op(name, kind, inputs, axes, fn=fn))

    def mask(self, name: str, rows: str, columns: str, diagonal: int = 0, corner: str = "") -> str:
        """1 where the place along `columns` is at most that along `rows` + diagonal. corner: as of Op.fn"""
        axes = tuple(sorted((*rows.split(), *columns.split())))
        sides = {"rows": tuple(rows.split()), "columns": tuple(columns.split())}
        return self._add(Op(name, Kind.MASK, axes=axes, value=float(diagonal), fn=corner, **sides))

    def add(self, name: str, a: str, b: str) -> str:
        return self.do(Kind.ADD, name, a, b)

    def mul(self, name: str, a: str, b: str) -> str:
        return self.do(Kind.MUL, name, a, b)

    def div(self, name: str, a: str, b: str) -> str:
        return self.do(Kind.DIV, name, a, b)

    def sqrt(self, name: str, a: str) -> str:
        return self.do(Kind.SQRT, name, a)

    def exp(self, name: str, a: str) -> str:
        return self.do(Kind.EXP, name, a)

    def unary(self, name: str, fn: str, a: str) -> str:
        return self.do(Kind.UNARY, name, a, fn=fn)

    def _reduce(self, kind: Kind, name: str, inputs: tuple[str, ...], over: str) -> str:
        gone = tuple(sorted(over.split()))
        axes = tuple(sorted({axis for value in inputs for axis in self.axes[value]} - set(gone)))
        return self._add(Op(name, kind, inputs, axes, over=gone))

    def sum(self, name: str, a: str, over: str) -> str:
        return self._reduce(Kind.SUM, name, (a,), over)

    def dot(self, name: str, a: str, b: str, over: str) -> str:
        return self._reduce(Kind.DOT, name, (a, b), over)

    def amax(self, name: str, a: str, over: str) -> str:
        return self._reduce(Kind.AMAX, name, (a,), over)

    def accum(self, name: str, a: str, loop: str, *, largest: bool = False) -> str:
        fn = LARGEST if largest else ""
        return self._add(Op(name, Kind.ACCUM, (a,), self.axes[a], over=(loop,), fn=fn))

    def store(self, value: str, tensor: str, dims: str | Dims, *, dtype: DType | None = None) -> None:
        self.outputs.append(self._tensor(tensor, _dims(dims), None, dtype))
        self._add(Op(f"store_{tensor}", Kind.STORE, (value,), self.axes[value], tensor=tensor))

    def build(self) -> BlockGraph:
        return BlockGraph(self.name, self.sizes, (*self.tensors, *self.outputs), tuple(self.ops), self.loops)


def _dims(dims: str | Dims) -> Dims:
    return tuple((axis,) for axis in dims.split()) if isinstance(dims, str) else dims


def nest(*axes: str) -> tuple[Loop, ...]:
    """Loops one inside the other, outermost first."""
    loops: tuple[Loop, ...] = ()
    for axis in reversed(axes):
        loops = (Loop(axis, loops),)
    return loops


def rms_norm_linear(
    m: int, h: int, n: int, *, eps: bool = True, weight: bool = True, dtype: DType = "f16"
) -> BlockGraph:
    """Mirage Figure 3b: the product and the sum of squares in one loop, the division after it."""
    g = Graph("rms_norm_linear", {"m": m, "h": h, "n": n}, nest("h"), dtype)
    x = g.load("x", "m h")
    if weight:
        weight_g = g.load("g", "h")
    w = g.load("w", "h n")
    squares = g.mul("squares", x, x)
    ss = g.accum("ss", g.sum("ss_part", squares, "h"), "h")
    scaled = g.mul("scaled", x, weight_g) if weight else x  # pyright: ignore[reportPossiblyUnboundVariable]
    acc = g.accum("acc", g.dot("acc_part", scaled, w, "h"), "h")
    mean = g.div("mean_square", ss, g.const("hidden", float(h)))
    if eps:
        mean = g.add("mean_eps", mean, g.const("eps", 1e-6))
    g.store(g.div("normed", acc, g.sqrt("rms", mean)), "out", "m n")
    return g.build()


def gated_mlp(m: int, h: int, n: int, *, dtype: DType = "f16") -> BlockGraph:
    """Mirage Figure 10b: both products in one loop."""
    g = Graph("gated_mlp", {"m": m, "h": h, "n": n}, nest("h"), dtype)
    x, gate, up = g.load("x", "m h"), g.load("w_gate", "h n"), g.load("w_up", "n h")
    a = g.accum("gate", g.dot("gate_part", x, gate, "h"), "h")
    b = g.accum("up", g.dot("up_part", x, up, "h"), "h")
    g.store(g.mul("gated", g.unary("act", "silu", a), b), "out", "m n")
    return g.build()


def lora(m: int, h: int, n: int, r: int, *, dtype: DType = "f16") -> BlockGraph:
    """out = x @ w + (x @ a) @ b: two accumulators in the loop, the small product after it."""
    g = Graph("lora", {"m": m, "h": h, "n": n, "r": r}, nest("h"), dtype)
    x, w, a, b = g.load("x", "m h"), g.load("w", "h n"), g.load("a", "h r"), g.load("b", "r n")
    base = g.accum("base", g.dot("base_part", x, w, "h"), "h")
    low = g.accum("low", g.dot("low_part", x, a, "h"), "h")
    g.store(g.add("total", base, g.dot("up", low, b, "r")), "out", "m n")
    return g.build()


def lora_side_by_side(m: int, h: int, n: int, r: int, *, dtype: DType = "f16") -> BlockGraph:
    """Mirage Figure 9b: in each iteration (x || x @ a) @ (w over b), as the sum of its two products."""
    g = Graph("lora", {"m": m, "h": h, "n": n, "r": r}, nest("h"), dtype)
    x, w, a, b = g.load("x", "m h"), g.load("w", "h n"), g.load("a", "h r"), g.load("b", "r n")
    low = g.dot("low", x, a, "h")
    part = g.add("part", g.dot("base", x, w, "h"), g.dot("up", low, b, "r"))
    g.store(g.accum("total", part, "h"), "out", "m n")
    return g.build()


def ntrans(m: int, h: int, *, dtype: DType = "f16") -> BlockGraph:
    """nTrans: y = norm(x + alpha * (norm(z) - x)), norms over whole rows."""
    g = Graph("ntrans", {"m": m, "h": h}, (), dtype)
    x, z, alpha = g.load("x", "m h"), g.load("z", "m h"), g.load("alpha", "h")
    zn = g.div("zn", z, g.sqrt("z_norm", g.sum("z_ss", g.mul("z_sq", z, z), "h")))
    delta = g.add("delta", zn, g.mul("minus_x", g.const("minus_one", -1.0), x))
    moved = g.add("moved", x, g.mul("step", alpha, delta))
    g.store(g.div("y", moved, g.sqrt("norm", g.sum("moved_ss", g.mul("moved_sq", moved, moved), "h"))), "out", "m h")
    return g.build()


def attention(
    b: int, q: int, kv: int, d: int, *, scale: float | None = 0.125, bias: bool = False, looped: bool = True,
    norm: bool = False, dtype: DType = "f16", diagonal: int | None = None, later: bool = False, corner: str = "",
) -> BlockGraph:  # fmt: skip
    """Softmax attention for `b` heads; optionally with an additive mask, with RMS-normalised queries and keys, with
    the logits negated (scale < 0), or causal: keys up to the query's place + diagonal (later: from there on)."""
    g = Graph("attention", {"b": b, "q": q, "kv": kv, "d": d, "e": d}, nest("kv") if looped else (), dtype)
    queries, keys, values = g.load("query", "b q d"), g.load("key", "b kv d"), g.load("value", "b kv e")
    if norm:
        queries = _rms(g, "q", queries, "d", d)
        keys = _rms(g, "k", keys, "d", d)
    s = g.dot("scores", queries, keys, "d")
    if scale is not None:
        s = g.mul("scaled", s, g.const("scale", scale))
    if bias:
        s = g.add("biased", s, g.load("mask" if diagonal is None else "bias", "q kv", dtype="f32"))
    p = g.exp("p", s)
    if diagonal is not None:
        rows, columns = ("kv", "q") if later else ("q", "kv")
        p = g.mul("kept", p, g.mask("causal", rows, columns, diagonal, corner))
    part, acc_part = g.sum("row_sum_part", p, "kv"), g.dot("acc_part", p, values, "kv")
    length = g.accum("row_sum", part, "kv") if looped else part
    acc = g.accum("acc", acc_part, "kv") if looped else acc_part
    g.store(g.div("o", acc, length), "out", "b q e")
    return g.build()


def window_attention(b: int, q: int, kv: int, d: int, width: int, *, corner: str, scale: float = 0.125) -> BlockGraph:
    """Causal attention of queries that each see the last `width` keys up to their own place, counted from a corner."""
    g = Graph("window_attention", {"b": b, "q": q, "kv": kv, "d": d, "e": d}, nest("kv"))
    queries, keys, values = g.load("query", "b q d"), g.load("key", "b kv d"), g.load("value", "b kv e")
    p = g.exp("p", g.mul("scaled", g.dot("scores", queries, keys, "d"), g.const("scale", scale)))
    behind = kv - q if corner == "last" else 0
    seen = g.mul("seen", g.mask("causal", "q", "kv", behind, corner),
                 g.mask("near", "kv", "q", width - 1 - behind, corner))  # fmt: skip
    kept = g.mul("kept", p, seen)
    length = g.accum("row_sum", g.sum("row_sum_part", kept, "kv"), "kv")
    acc = g.accum("acc", g.dot("acc_part", kept, values, "kv"), "kv")
    g.store(g.div("o", acc, length), "out", "b q e")
    return g.build()


def _rms(g: Graph, prefix: str, x: str, axis: str, size: int) -> str:
    ss = g.sum(f"{prefix}_ss", g.mul(f"{prefix}_sq", x, x), axis)
    mean = g.div(f"{prefix}_mean", ss, g.const(f"{prefix}_size", size))
    return g.div(f"{prefix}_normed", x, g.sqrt(f"{prefix}_rms", mean))


def causal_linear_attention(b: int, q: int, kv: int, d: int, diagonal: int = 0) -> BlockGraph:
    """(Q K^T) V with the keys after each query left out, and no softmax."""
    g = Graph("causal_linear_attention", {"b": b, "q": q, "kv": kv, "d": d, "e": d}, nest("kv"))
    queries, keys, values = g.load("query", "b q d"), g.load("key", "b kv d"), g.load("value", "b kv e")
    kept = g.mul("kept", g.mask("causal", "q", "kv", diagonal), g.dot("scores", queries, keys, "d"))
    g.store(g.accum("acc", g.dot("acc_part", kept, values, "kv"), "kv"), "out", "b q e")
    return g.build()


def grouped_attention(
    s: int, kvh: int, group: int, q: int, d: int, kv: int, *, causal: bool = False
) -> BlockGraph:  # fmt: skip
    """Grouped queries: `group` and `q` are rows of one product; keys lie as [s, kv, (kvh d)], queries are strided."""
    sizes = {"kvh": kvh, "group": group, "q": q, "d": d, "kv": kv, "e": d, "s": s}
    g = Graph("grouped_attention", sizes, nest("kv"))
    # queries are stored [s, q, (kvh group d)] and seen as [s, kvh, group, q, d]
    width = kvh * group * d
    queries = g.load("query", "s kvh group q d", strides=(q * width, group * d, d, width, 1))
    keys = g.load("key", (("s",), ("kv",), ("kvh", "d")))
    values = g.load("value", (("s",), ("kv",), ("kvh", "e")))
    p = g.exp("p", g.mul("scaled", g.dot("scores", queries, keys, "d"), g.const("scale", 0.2)))
    if causal:
        p = g.mul("kept", p, g.mask("causal", "q", "kv", kv - q))
    length = g.accum("row_sum", g.sum("row_sum_part", p, "kv"), "kv")
    acc = g.accum("acc", g.dot("acc_part", p, values, "kv"), "kv")
    g.store(g.div("o", acc, length), "out", (("s",), ("q",), ("kvh", "group", "e")))
    return g.build()


def layer_norm(m: int, h: int, *, looped: bool = False, dtype: DType = "f16") -> BlockGraph:
    """Layer norm; rows that do not fit walk three times over `h`."""
    g = Graph("layer_norm", {"m": m, "h": h}, nest("h") if looped else (), dtype)
    x, w, b = g.load("x", "m h"), g.load("w", "h"), g.load("b", "h")

    def mean(name: str, value: str) -> str:
        total = g.sum(f"{name}_sum", value, "h")
        if looped:
            total = g.accum(f"{name}_total", total, "h")
        return g.div(name, total, g.const(f"{name}_size", float(h)))

    centered = g.add("centered", x, g.mul("minus_mu", g.const("minus_one", -1.0), mean("mu", x)))
    variance = g.add("var_eps", mean("var", g.mul("squares", centered, centered)), g.const("eps", 1e-5))
    normed = g.div("normed", centered, g.sqrt("std", variance))
    g.store(g.add("y", g.mul("scaled", normed, w), b), "out", "m h")
    return g.build()


def softmax(m: int, n: int, *, looped: bool = False, dtype: DType = "f32") -> BlockGraph:
    """The probabilities themselves: a second pass when the row is looped."""
    g = Graph("softmax", {"m": m, "n": n}, nest("n") if looped else (), dtype)
    p = g.exp("p", g.load("x", "m n"))
    total = g.sum("total", p, "n")
    g.store(g.div("y", p, g.accum("sum", total, "n") if looped else total), "out", "m n")
    return g.build()


def gemm_chain(m: int, k: int, n: int, h: int, *, loops: Sequence[str], dtype: DType = "f16") -> BlockGraph:
    """MCFuser's chain E[m, h] = (A[m, k] @ B[k, n]) @ D[n, h] with `k` inside `n`, or only one of them, looped."""
    g = Graph("gemm_chain", {"m": m, "k": k, "n": n, "h": h}, nest(*loops), dtype)
    a, b, d = g.load("a", "m k"), g.load("b", "k n"), g.load("d", "n h")
    c = g.dot("c_part", a, b, "k")
    if "k" in loops:
        c = g.accum("c", c, "k")
    e = g.dot("e_part", c, d, "n")
    if "n" in loops:
        e = g.accum("e", e, "n")
    g.store(e, "out", "m h")
    return g.build()


def batched(b: int, m: int, k: int, n: int, *, dtype: DType = "f16") -> BlockGraph:
    """out[b] = relu(x[b] @ w[b] + bias), `w` transposed in memory."""
    g = Graph("batched", {"b": b, "m": m, "k": k, "n": n}, nest("k"), dtype)
    x, w, bias = g.load("x", "b m k"), g.load("w", "b n k"), g.load("bias", "n")
    acc = g.accum("acc", g.dot("acc_part", x, w, "k"), "k")
    g.store(g.unary("y", "relu", g.add("biased", acc, bias)), "out", "b m n")
    return g.build()


def mixed_types(m: int, k: int, n: int) -> BlockGraph:
    """float16 activations, bfloat16 weights, float32 result, and its row sums beside it."""
    g = Graph("mixed_types", {"m": m, "k": k, "n": n}, nest("k"))
    x, w = g.load("x", "m k"), g.load("w", "k n", dtype="bf16")
    acc = g.accum("acc", g.dot("acc_part", x, w, "k"), "k")
    rows = g.accum("rows", g.sum("rows_part", x, "k"), "k")
    g.store(acc, "out", "m n", dtype="f32")
    g.store(rows, "row_sums", "m", dtype="f32")
    return g.build()


def tile_sum(m: int, h: int) -> BlockGraph:
    """SUM(ACCUM(x)): the tile is kept through the loop and summed after it."""
    g = Graph("tile_sum", {"m": m, "h": h}, nest("h"), "f32")
    g.store(g.sum("total", g.accum("tile", g.unary("e", "sigmoid", g.load("x", "m h")), "h"), "h"), "out", "m")
    return g.build()


def activations(m: int, h: int, *, scale: float = 1.0) -> BlockGraph:
    """Every unary function on a row, each with its own text, summed over the padded row. scale: of its numbers"""
    g = Graph("activations", {"m": m, "h": h}, (), "f32")
    x = g.mul("scaled", g.load("x", "m h"), g.const("factor", scale))
    total = g.unary("first", "silu", x)
    for fn in ("relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "abs", "erf"):
        total = g.add(f"with_{fn}", total, g.unary(f"y_{fn}", fn, x))
    g.store(g.sum("row", total, "h"), "out", "m")
    return g.build()


def broadcast_load(m: int, h: int) -> BlockGraph:
    """An expanded input: stride 0 along the rows."""
    g = Graph("broadcast_load", {"m": m, "h": h}, (), "f32")
    x, y = g.load("x", "m h"), g.load("y", "m h", strides=(0, 1))
    g.store(g.sum("s", g.mul("xy", x, y), "h"), "out", "m")
    return g.build()


def size(block: BlockGraph) -> int:
    """Elements of all tensors."""
    return sum(prod(tensor.shape(block.sizes)) for tensor in block.tensors)


def convolution(
    n: int, c: int, o: int, height: int, width: int, *, taps: tuple[int, int] = (3, 3), stride: int = 1, pad: int = 1,
    dilation: int = 1, spread: int = 1, more: int = 0, loops: str = "r s c", dtype: DType = "f16",
    gated: bool = False,
) -> BlockGraph:  # fmt: skip
    """Implicit GEMM: bias and SiLU after loops over the kernel's rows and columns, and over channels.

    spread, more: of a transposed convolution its stride, and the places after its last one
    """
    sizes = {"n": n, "o": o, "c": c, "r": taps[0], "s": taps[1]}
    windows: list[Window] = []
    for dim, (axis, extent, tap) in enumerate(zip("pq", (height, width), taps, strict=True), 2):
        reach = (extent - 1) * spread + 2 * pad - dilation * (tap - 1) + more
        sizes[axis] = reach // stride + 1
        windows.append(Window(dim, 1, stride, dilation, pad, reach % stride - pad - more, spread=spread))
    g = Graph("convolution", sizes, nest(*loops.split()), dtype)
    dims = (("n",), ("c",), ("p", "r"), ("q", "s"))
    strides = (c * height * width, height * width, width, 1)
    g.tensors.append(Tensor("x", dims, strides, dtype, windows=tuple(windows)))
    x = g._add(Op("x", Kind.LOAD, axes=tuple(sorted("ncprqs")), tensor="x"))

    def convolved(weight: str, name: str) -> str:
        value = g.dot(f"{name}_part", x, g.load(weight, "o c r s"), "c r s")
        for loop in reversed(loops.split()):
            value = g.accum(name if loop == loops[0] else f"{name}_{loop}", value, loop)
        return value

    activated = g.unary("activated", "silu", g.add("biased", convolved("w", "acc"), g.load("bias", "o")))
    g.store(g.mul("gated", activated, convolved("v", "gate")) if gated else activated, "out", "n o p q")
    return g.build()


def packed_rows(g_size: int, s: int, k: int, n: int, *, depth: bool = False) -> BlockGraph:
    """relu(x[g, s, k] @ w[k, n] * scale[s, n] + bias[g]): scale and bias lack an axis of the rows. depth: the product
    sums over two axes instead of k."""
    g = Graph("packed_rows", {"g": g_size, "s": s, "k": k, "n": n, **({"h": 3} if depth else {})})
    inner = "h k" if depth else "k"
    z = g.dot("z", g.load("x", f"g s {inner}"), g.load("w", f"{inner} n"), inner)
    scaled = g.mul("scaled", z, g.load("scale", "s n"))
    moved = g.add("moved", scaled, g.load("bias", "g"))
    g.store(g.unary("y", "relu", moved), "out", "s g n")
    return g.build()


def inner_products(b: int, k: int, n: int) -> BlockGraph:
    """The mean over the batch b of the inner products of two rows of each: a product of batch axes alone."""
    g = Graph("inner_products", {"b": b, "k": k, "n": n})
    products = g.dot("products", g.load("x", "b n k"), g.load("y", "b n k"), "k")
    g.store(g.div("mean", g.sum("total", products, "b"), g.const("count", float(b))), "out", "n")
    return g.build()

"""Hand-built μGraphs of the papers, shared by the tests of several rooms.

`GRAPHS` maps each name to its function; `PROGRAMS` maps a name to the tensor program the graph computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, DType, Sizes, Tensor, contiguous_strides
from mugraph.optimizer.thread_fusion import fuse_threads


class Ops:
    """Builds operators one by one and derives their axes from those of their operands."""

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        self.tensors = {tensor.name: tensor for tensor in tensors}
        self.ops: list[Op] = []

    def axes(self, *names: str) -> frozenset[str]:
        return frozenset(axis for op in self.ops if op.name in names for axis in op.axes)

    def add(self, op: Op) -> str:
        self.ops.append(op)
        return op.name

    def load(self, name: str, tensor: str) -> str:
        return self.add(Op(name, Kind.LOAD, axes=tuple(sorted(self.tensors[tensor].axes)), tensor=tensor))

    def const(self, name: str, value: float) -> str:
        return self.add(Op(name, Kind.CONST, value=value))

    def op(self, name: str, kind: Kind, *inputs: str, fn: str = "", f32: bool = False) -> str:
        return self.add(Op(name, kind, inputs, tuple(sorted(self.axes(*inputs))), fn=fn, f32=f32))

    def reduce(self, name: str, kind: Kind, *inputs: str, over: str, f32: bool = False) -> str:
        axes = tuple(sorted(self.axes(*inputs) - {over}))
        return self.add(Op(name, kind, inputs, axes, (over,), f32=f32))

    def accum(self, name: str, value: str, over: str, fn: str = "") -> str:
        return self.add(Op(name, Kind.ACCUM, (value,), tuple(sorted(self.axes(value))), (over,), fn=fn))

    def store(self, name: str, value: str, tensor: str) -> str:
        return self.add(Op(name, Kind.STORE, (value,), tuple(sorted(self.axes(value))), tensor=tensor))


def tensor(name: str, dims: Dims, sizes: Sizes, dtype: DType = "f16", source: str = "") -> Tensor:
    """Row-major."""
    return Tensor(name, dims, contiguous_strides(dims, sizes), dtype, source)


def transposed(name: str, row: str, column: str, sizes: Sizes, source: str = "") -> Tensor:
    """[row, column] stored column-major: a Linear's weight, seen as [in, out]."""
    return Tensor(name, ((row,), (column,)), (1, sizes[row]), "f16", source)


def kernel(block: BlockGraph, schedule: Schedule) -> GraphKernel:
    """With its thread graphs."""
    return GraphKernel(block.name, block, schedule, fuse_threads(block))


def single(block: BlockGraph, schedule: Schedule) -> MuGraph:
    """A kernel graph of one graph-defined kernel."""
    return MuGraph(
        block.name,
        block.sizes,
        block.tensors,
        tuple(tensor.name for tensor in block.inputs),
        tuple(tensor.name for tensor in block.outputs),
        (kernel(block, schedule),),
    )


def rmsnorm_matmul() -> MuGraph:
    """Mirage v3, Figure 3b: RMSNorm and MatMul in one kernel, the division moved behind the product.

    x [16, 1024], g [1024], w [1024, 4096]; a loop over h accumulates the product and the sum of squares together.
    """
    sizes = {"b": 16, "h": 1024, "n": 4096}
    tensors = (
        tensor("x", (("b",), ("h",)), sizes, source="x"),
        tensor("g", (("h",),), sizes, source="self.norm.weight"),
        tensor("w", (("h",), ("n",)), sizes, source="w"),
        tensor("y", (("b",), ("n",)), sizes),
    )
    ops = Ops(tensors)
    ops.load("X", "x"), ops.load("G", "g"), ops.load("W", "w")
    ops.op("xg", Kind.MUL, "X", "G")
    ops.reduce("xgw", Kind.DOT, "xg", "W", over="h")
    ops.accum("product", "xgw", "h")
    ops.op("xx", Kind.MUL, "X", "X", f32=True)
    ops.reduce("ss", Kind.SUM, "xx", over="h", f32=True)
    ops.accum("squares", "ss", "h")
    ops.const("count", 1024.0)
    ops.op("mean", Kind.DIV, "squares", "count", f32=True)
    ops.op("rms", Kind.SQRT, "mean", f32=True)
    ops.op("z", Kind.DIV, "product", "rms")
    ops.store("out", "z", "y")
    block = BlockGraph("rmsnorm_matmul", sizes, tensors, tuple(ops.ops), (Loop("h"),))
    return single(block, Schedule((("n", 64), ("b", 16)), {"h": 256}))


def two_kernels() -> MuGraph:
    """`rmsnorm_matmul` with two matrices, in one launch of two kernels."""
    graph = rmsnorm_matmul()
    (first,) = graph.kernels
    assert isinstance(first, GraphKernel)
    new = {"w": "w_2", "y": "y_2"}
    tensors = tuple(replace(one, name=new.get(one.name, one.name), source="") for one in first.block.tensors)
    tensors = (*first.block.tensors[:2], *tensors[2:])
    ops = tuple(replace(op, tensor=new.get(op.tensor, op.tensor)) for op in first.block.ops)
    block = replace(first.block, name=f"{first.name}_2", tensors=tensors, ops=ops)
    second = kernel(block, first.schedule)
    return replace(
        graph,
        tensors=(*graph.tensors, *tensors[2:]),
        inputs=("x", "g", "w", "w_2"),
        outputs=("y", "y_2"),
        kernels=(first, second),
        one_launch=((first.name, second.name),),
    )


def rmsnorm_matmul_program() -> TensorProgram:
    """What `rmsnorm_matmul` computes: (x * g / sqrt(mean(x * x))) @ w."""
    graph = rmsnorm_matmul()
    x, g, w, y = graph.tensors
    ops = Ops((x, g, w))
    ops.load("X", "x"), ops.load("G", "g"), ops.load("W", "w")
    ops.op("xx", Kind.MUL, "X", "X", f32=True)
    ops.reduce("ss", Kind.SUM, "xx", over="h", f32=True)
    ops.const("count", 1024.0)
    ops.op("mean", Kind.DIV, "ss", "count", f32=True)
    ops.op("rms", Kind.SQRT, "mean", f32=True)
    ops.op("normed", Kind.DIV, "X", "rms", f32=True)
    ops.op("scaled", Kind.MUL, "normed", "G")
    ops.reduce("z", Kind.DOT, "scaled", "W", over="h")
    return TensorProgram("rmsnorm_matmul", graph.sizes, (x, g, w), tuple(ops.ops), {"z": y})


def gated_mlp() -> MuGraph:
    """Mirage v3, Figure 10b: both products share one load of x; silu and the product run before the store."""
    sizes = {"b": 8, "h": 4096, "n": 4096}
    tensors = (
        tensor("x", (("b",), ("h",)), sizes, source="x"),
        transposed("gate", "h", "n", sizes, source="self.gate.weight.T"),
        transposed("up", "h", "n", sizes, source="self.up.weight.T"),
        tensor("y", (("b",), ("n",)), sizes),
    )
    ops = Ops(tensors)
    ops.load("X", "x"), ops.load("W1", "gate"), ops.load("W2", "up")
    ops.reduce("xw1", Kind.DOT, "X", "W1", over="h")
    ops.reduce("xw2", Kind.DOT, "X", "W2", over="h")
    ops.accum("gated", "xw1", "h")
    ops.accum("raised", "xw2", "h")
    ops.op("activated", Kind.UNARY, "gated", fn="silu")
    ops.op("z", Kind.MUL, "activated", "raised")
    ops.store("out", "z", "y")
    block = BlockGraph("gated_mlp", sizes, tensors, tuple(ops.ops), (Loop("h"),))
    schedule = Schedule((("n", 64), ("b", 8)), {"h": 128}, swap=True, num_stages=4)
    return single(block, schedule)


def gated_mlp_program() -> TensorProgram:
    """What `gated_mlp` computes: silu(x @ gate) * (x @ up)."""
    graph = gated_mlp()
    x, gate, up, y = graph.tensors
    ops = Ops((x, gate, up))
    ops.load("X", "x"), ops.load("W1", "gate"), ops.load("W2", "up")
    ops.reduce("xw1", Kind.DOT, "X", "W1", over="h")
    ops.reduce("xw2", Kind.DOT, "X", "W2", over="h")
    ops.op("activated", Kind.UNARY, "xw1", fn="silu")
    ops.op("z", Kind.MUL, "activated", "xw2")
    return TensorProgram("gated_mlp", graph.sizes, (x, gate, up), tuple(ops.ops), {"z": y})


def lora() -> MuGraph:
    """LoRA in one kernel: the rank-16 product x a is accumulated beside x w, and multiplied by b after the loop."""
    sizes = {"m": 16, "k": 256, "r": 16, "n": 4096}
    tensors = (
        tensor("x", (("m",), ("k",)), sizes, source="x"),
        tensor("w", (("k",), ("n",)), sizes, source="w"),
        tensor("a", (("k",), ("r",)), sizes, source="a"),
        tensor("b", (("r",), ("n",)), sizes, source="b"),
        tensor("y", (("m",), ("n",)), sizes),
    )
    ops = Ops(tensors)
    ops.load("X", "x"), ops.load("W", "w"), ops.load("A", "a")
    ops.reduce("xw", Kind.DOT, "X", "W", over="k")
    ops.reduce("xa", Kind.DOT, "X", "A", over="k")
    ops.accum("base", "xw", "k")
    ops.accum("low", "xa", "k")
    ops.load("B", "b")
    ops.reduce("adapter", Kind.DOT, "low", "B", over="r")
    ops.op("z", Kind.ADD, "base", "adapter")
    ops.store("out", "z", "y")
    block = BlockGraph("lora", sizes, tensors, tuple(ops.ops), (Loop("k"),))
    return single(block, Schedule((("n", 32), ("m", 16)), {"k": 128}))


def lora_program() -> TensorProgram:
    """What `lora` computes: x @ w + (x @ a) @ b."""
    graph = lora()
    x, w, a, b, y = graph.tensors
    ops = Ops((x, w, a, b))
    ops.load("X", "x"), ops.load("W", "w"), ops.load("A", "a"), ops.load("B", "b")
    ops.reduce("base", Kind.DOT, "X", "W", over="k")
    ops.reduce("low", Kind.DOT, "X", "A", over="k")
    ops.reduce("adapter", Kind.DOT, "low", "B", over="r")
    ops.op("z", Kind.ADD, "base", "adapter")
    return TensorProgram("lora", graph.sizes, (x, w, a, b), tuple(ops.ops), {"z": y})


def attention() -> MuGraph:
    """Softmax attention as FlashAttention has it: numerator and denominator accumulated over the keys.

    The algebra has no running maximum; lowering adds it (exp is shift-invariant here).
    """
    sizes = {"h": 2, "q": 256, "k": 4096, "d": 64, "e": 64}
    tensors = (
        tensor("q", (("h",), ("q",), ("d",)), sizes, source="q"),
        tensor("k", (("h",), ("k",), ("d",)), sizes, source="k"),
        tensor("v", (("h",), ("k",), ("e",)), sizes, source="v"),
        tensor("y", (("h",), ("q",), ("e",)), sizes),
    )
    ops = Ops(tensors)
    ops.load("Q", "q"), ops.load("K", "k"), ops.load("V", "v")
    ops.reduce("qk", Kind.DOT, "Q", "K", over="d")
    ops.const("scale", 0.125)
    ops.op("scores", Kind.MUL, "qk", "scale")
    ops.op("p", Kind.EXP, "scores", f32=True)
    ops.reduce("pv", Kind.DOT, "p", "V", over="k")
    ops.accum("numerator", "pv", "k")
    ops.reduce("row", Kind.SUM, "p", over="k")
    ops.accum("denominator", "row", "k")
    ops.op("z", Kind.DIV, "numerator", "denominator")
    ops.store("out", "z", "y")
    block = BlockGraph("attention", sizes, tensors, tuple(ops.ops), (Loop("k"),))
    return single(block, Schedule((("q", 64), ("h", 1)), {"k": 64}))


def attention_program() -> TensorProgram:
    """What `attention` computes: softmax(q k^T / 8) v."""
    graph = attention()
    q, k, v, y = graph.tensors
    ops = Ops((q, k, v))
    ops.load("Q", "q"), ops.load("K", "k"), ops.load("V", "v")
    ops.reduce("qk", Kind.DOT, "Q", "K", over="d")
    ops.const("scale", 0.125)
    ops.op("scores", Kind.MUL, "qk", "scale")
    ops.op("p", Kind.EXP, "scores", f32=True)
    ops.reduce("row", Kind.SUM, "p", over="k", f32=True)
    ops.op("weights", Kind.DIV, "p", "row", f32=True)
    ops.reduce("z", Kind.DOT, "weights", "V", over="k")
    return TensorProgram("attention", graph.sizes, (q, k, v), tuple(ops.ops), {"z": y})


def split_attention() -> MuGraph:
    """Attention for decoding: the keys split over the grid, blocks leave partial sums, a second kernel adds them."""
    sizes = {"h": 2, "q": 8, "s": 32, "k": 256, "d": 128, "e": 128}
    steps = sizes["s"] * sizes["k"]
    q = tensor("q", (("h",), ("q",), ("d",)), sizes, source="q")
    k = Tensor("k", (("h",), ("s", "k"), ("d",)), (steps * 128, 128, 1), "f16", "k_cache")
    v = Tensor("v", (("h",), ("s", "k"), ("e",)), (steps * 128, 128, 1), "f16", "v_cache")
    parts = tensor("parts", (("s",), ("h",), ("q",), ("e",)), sizes, "f32")
    weights = tensor("weights", (("s",), ("h",), ("q",)), sizes, "f32")
    y = tensor("y", (("h",), ("q",), ("e",)), sizes)
    first = Ops((q, k, v, parts, weights))
    first.load("Q", "q"), first.load("K", "k"), first.load("V", "v")
    first.reduce("qk", Kind.DOT, "Q", "K", over="d")
    first.op("p", Kind.EXP, "qk", f32=True)
    first.reduce("pv", Kind.DOT, "p", "V", over="k")
    first.accum("numerator", "pv", "k")
    first.reduce("row", Kind.SUM, "p", over="k")
    first.accum("denominator", "row", "k")
    first.store("store_parts", "numerator", "parts")
    first.store("store_weights", "denominator", "weights")
    partial = BlockGraph("partial_attention", sizes, (q, k, v, parts, weights), tuple(first.ops), (Loop("k"),))
    second = Ops((parts, weights, y))
    second.load("P", "parts"), second.load("L", "weights")
    second.reduce("top", Kind.SUM, "P", over="s")
    second.reduce("bottom", Kind.SUM, "L", over="s")
    second.op("z", Kind.DIV, "top", "bottom")
    second.store("out", "z", "y")
    inner = {axis: sizes[axis] for axis in ("h", "q", "s", "e")}
    combine = BlockGraph("combine", inner, (parts, weights, y), tuple(second.ops))
    return MuGraph(
        "split_attention",
        sizes,
        (q, k, v, parts, weights, y),
        ("q", "k", "v"),
        ("y",),
        (
            kernel(partial, Schedule((("s", 1), ("h", 1)), {"k": 64})),
            kernel(combine, Schedule((("q", 1), ("h", 1)), num_warps=2, num_stages=1)),
        ),
    )


def norm_transformer() -> MuGraph:
    """Mirage's nTrans: rms_norm(x + alpha (rms_norm(h) - x)), whole rows in one block, no loop."""
    sizes = {"b": 8, "d": 4096}
    tensors = tuple(tensor(name, (("b",), ("d",)), sizes, source=name) for name in ("x", "h", "alpha"))
    tensors = (*tensors, tensor("y", (("b",), ("d",)), sizes))
    ops = Ops(tensors)
    ops.load("X", "x"), ops.load("H", "h"), ops.load("A", "alpha")
    ops.const("count", 4096.0), ops.const("eps", 1e-6), ops.const("minus", -1.0)

    def rms_norm(name: str, value: str) -> str:
        ops.op(f"{name}_sq", Kind.MUL, value, value, f32=True)
        ops.reduce(f"{name}_ss", Kind.SUM, f"{name}_sq", over="d", f32=True)
        ops.op(f"{name}_mean", Kind.DIV, f"{name}_ss", "count", f32=True)
        ops.op(f"{name}_eps", Kind.ADD, f"{name}_mean", "eps", f32=True)
        ops.op(f"{name}_rms", Kind.SQRT, f"{name}_eps", f32=True)
        return ops.op(f"{name}_norm", Kind.DIV, value, f"{name}_rms", f32=True)

    normed = rms_norm("h", "H")
    ops.op("negative", Kind.MUL, "X", "minus")
    ops.op("change", Kind.ADD, normed, "negative")
    ops.op("step", Kind.MUL, "A", "change")
    ops.op("moved", Kind.ADD, "X", "step")
    ops.store("out", rms_norm("m", "moved"), "y")
    block = BlockGraph("norm_transformer", sizes, tensors, tuple(ops.ops))
    return single(block, Schedule((("b", 1),), num_warps=8, num_stages=1))


def gemm_chain() -> MuGraph:
    """MCFuser's G1 by the flat tiling expression m n(k, h): a nest of loops, k inside n."""
    sizes = {"m": 512, "n": 256, "k": 64, "h": 64}
    tensors = (
        tensor("a", (("m",), ("k",)), sizes, source="a"),
        tensor("b", (("k",), ("n",)), sizes, source="b"),
        tensor("d", (("n",), ("h",)), sizes, source="d"),
        tensor("e", (("m",), ("h",)), sizes),
    )
    ops = Ops(tensors)
    ops.load("A", "a"), ops.load("B", "b")
    ops.reduce("ab", Kind.DOT, "A", "B", over="k")
    ops.accum("c", "ab", "k")
    ops.load("D", "d")
    ops.reduce("cd", Kind.DOT, "c", "D", over="n")
    ops.accum("z", "cd", "n")
    ops.store("out", "z", "e")
    block = BlockGraph("gemm_chain", sizes, tensors, tuple(ops.ops), (Loop("n", (Loop("k"),)),))
    return single(block, Schedule((("h", 64), ("m", 32)), {"n": 128, "k": 32}))


def norm_and_cat() -> MuGraph:
    """A generated kernel between two library kernels: a scaled copy of what torch.cat left."""
    sizes = {"b": 4, "c": 256, "c1": 128, "c2": 128}
    left, right = tensor("left", (("b",), ("c1",)), sizes), tensor("right", (("b",), ("c2",)), sizes)
    joined, scaled = tensor("joined", (("b",), ("c",)), sizes), tensor("scaled", (("b",), ("c",)), sizes, "f32")
    ordered = tensor("ordered", (("b",), ("c",)), sizes, "f32")
    ops = Ops((joined, scaled))
    ops.load("J", "joined")
    ops.const("factor", 0.5)
    ops.op("half", Kind.MUL, "J", "factor")
    ops.store("out", "half", "scaled")
    block = BlockGraph("scale", sizes, (joined, scaled), tuple(ops.ops))
    return MuGraph(
        "norm_and_cat",
        sizes,
        (left, right, joined, scaled, ordered),
        ("left", "right"),
        ("ordered",),
        (
            LibraryKernel("cat", "torch.cat((left, right), dim=-1)", ("left", "right"), ("joined",)),
            kernel(block, Schedule((("c", 128), ("b", 4)))),
            LibraryKernel("sort", "torch.sort(scaled).values", ("scaled",), ("ordered",)),
        ),
    )


def norm_and_matmul() -> MuGraph:
    """RMSNorm and MatMul as two kernels: the norm graph-defined, the product pre-defined, and said what it computes."""
    sizes = {"b": 512, "h": 1024, "n": 4096}
    x, w = tensor("x", (("b",), ("h",)), sizes, source="x"), transposed("w", "h", "n", sizes, source="self.weight")
    normed, y = tensor("normed", (("b",), ("h",)), sizes), tensor("y", (("b",), ("n",)), sizes)
    ops = Ops((x, normed))
    ops.load("X", "x")
    ops.op("xx", Kind.MUL, "X", "X", f32=True)
    ops.reduce("ss", Kind.SUM, "xx", over="h", f32=True)
    ops.const("count", 1024.0)
    ops.op("mean", Kind.DIV, "ss", "count", f32=True)
    ops.op("rms", Kind.SQRT, "mean", f32=True)
    ops.op("z", Kind.DIV, "X", "rms")
    ops.store("out", "z", "normed")
    norm = BlockGraph("norm", {"b": 512, "h": 1024}, (x, normed), tuple(ops.ops))
    product = Ops((normed, w, y))
    product.load("Z", "normed"), product.load("W", "w")
    product.reduce("zw", Kind.DOT, "Z", "W", over="h")
    product.store("out", "zw", "y")
    block = BlockGraph("mm", sizes, (normed, w, y), tuple(product.ops))
    return MuGraph(
        "norm_and_matmul",
        sizes,
        (x, normed, w, y),
        ("x", "w"),
        ("y",),
        (
            kernel(norm, Schedule((("b", 1),))),
            LibraryKernel("mm", "torch.mm(normed, w)", ("normed", "w"), ("y",), block),
        ),
    )


GRAPHS: Mapping[str, Callable[[], MuGraph]] = {
    graph.__name__: graph
    for graph in (
        rmsnorm_matmul,
        gated_mlp,
        lora,
        attention,
        split_attention,
        norm_transformer,
        gemm_chain,
        norm_and_cat,
        norm_and_matmul,
    )
}

PROGRAMS: Mapping[str, Callable[[], TensorProgram]] = {
    "rmsnorm_matmul": rmsnorm_matmul_program,
    "gated_mlp": gated_mlp_program,
    "lora": lora_program,
    "attention": attention_program,
}

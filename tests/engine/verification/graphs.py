"""Programs and correct block graphs for them, built by hand: what the verifier must accept, and mutants start from."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import DType, Tensor, contiguous_strides


class Builder:
    """Writes operators down one after the other, working out their axes."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._axes: dict[str, tuple[str, ...]] = {}

    def load(self, name: str, tensor: Tensor) -> str:
        return self._add(Op(name, Kind.LOAD, (), tuple(sorted(tensor.axes)), tensor=tensor.name))

    def const(self, name: str, value: float) -> str:
        return self._add(Op(name, Kind.CONST, value=value))

    def ew(self, name: str, kind: Kind, *inputs: str, fn: str = "") -> str:
        axes = tuple(sorted({axis for i in inputs for axis in self._axes[i]}))
        return self._add(Op(name, kind, inputs, axes, fn=fn))

    def reduce(self, name: str, kind: Kind, *inputs: str, over: str) -> str:
        axes = tuple(sorted({axis for i in inputs for axis in self._axes[i]} - {over}))
        return self._add(Op(name, kind, inputs, axes, (over,)))

    def accum(self, name: str, value: str, over: str) -> str:
        return self._add(Op(name, Kind.ACCUM, (value,), self._axes[value], (over,)))

    def store(self, value: str, tensor: Tensor) -> None:
        self.ops.append(Op(f"store_{tensor.name}", Kind.STORE, (value,), self._axes[value], tensor=tensor.name))

    def _add(self, op: Op) -> str:
        self.ops.append(op)
        self._axes[op.name] = op.axes
        return op.name


@dataclass(frozen=True)
class Case:
    program: TensorProgram
    block: BlockGraph


def tensor(name: str, axes: str, sizes: dict[str, int], dtype: DType = "f16") -> Tensor:
    """`axes`: dimensions separated by blanks, one axis each."""
    dims = tuple((axis,) for axis in axes.split())
    return Tensor(name, dims, contiguous_strides(dims, sizes), dtype, source=name)


def rms_norm_linear() -> Case:
    """Figure 3 of the paper: the division by the root mean square moves behind the matmul (3b)."""
    sizes = {"b": 16, "h": 1024, "n": 4096}
    x, g, w, z = (
        tensor("x", "b h", sizes),
        tensor("g", "h", sizes),
        tensor("w", "n h", sizes),
        tensor("z", "b n", sizes),
    )
    p = Builder()
    p.load("x", x), p.load("g", g), p.load("w", w)
    p.ew("sq", Kind.MUL, "x", "x")
    p.reduce("ss", Kind.SUM, "sq", over="h")
    p.const("inv_h", 1 / 1024), p.ew("mean", Kind.MUL, "ss", "inv_h")
    p.const("eps", 1e-6), p.ew("shifted", Kind.ADD, "mean", "eps")
    p.ew("rms", Kind.SQRT, "shifted"), p.ew("normed", Kind.DIV, "x", "rms"), p.ew("scaled", Kind.MUL, "normed", "g")
    p.reduce("out", Kind.DOT, "scaled", "w", over="h")
    program = TensorProgram("rms_norm_linear", sizes, (x, g, w), tuple(p.ops), {"out": z})

    b = Builder()
    b.load("x", x), b.load("g", g), b.load("w", w)
    b.ew("xg", Kind.MUL, "x", "g"), b.reduce("part", Kind.DOT, "xg", "w", over="h"), b.accum("acc", "part", "h")
    b.ew("sq", Kind.MUL, "x", "x"), b.reduce("ss_part", Kind.SUM, "sq", over="h"), b.accum("ss", "ss_part", "h")
    b.const("inv_h", 1 / 1024), b.ew("mean", Kind.MUL, "ss", "inv_h")
    b.const("eps", 1e-6), b.ew("shifted", Kind.ADD, "mean", "eps")
    b.ew("rms", Kind.SQRT, "shifted"), b.ew("out", Kind.DIV, "acc", "rms")
    b.store("out", z)
    return Case(program, BlockGraph("rms_norm_linear", sizes, (x, g, w, z), tuple(b.ops), (Loop("h"),)))


def rms_norm_linear_late_sum() -> Case:
    """As above, with the squares kept as a tile and summed after the loop: SUM(ACCUM(x))."""
    case = rms_norm_linear()
    ops: list[Op] = []
    for op in case.block.ops:
        if op.name == "ss_part":
            ops.append(Op("ss_tile", Kind.ACCUM, ("sq",), ("b", "h"), ("h",)))
        elif op.name == "ss":
            ops.append(Op("ss", Kind.SUM, ("ss_tile",), ("b",), ("h",)))
        else:
            ops.append(op)
    block = BlockGraph("rms_late", case.block.sizes, case.block.tensors, tuple(ops), case.block.loops)
    return Case(case.program, block)


def gated_mlp() -> Case:
    """silu(x W) * (x V), both products in one loop."""
    sizes = {"m": 8, "k": 4096, "n": 4096}
    x, w, v, o = (
        tensor("x", "m k", sizes),
        tensor("w", "k n", sizes),
        tensor("v", "k n", sizes),
        tensor("o", "m n", sizes),
    )
    p = Builder()
    p.load("x", x), p.load("w", w), p.load("v", v)
    p.reduce("gate", Kind.DOT, "x", "w", over="k"), p.reduce("up", Kind.DOT, "x", "v", over="k")
    p.ew("act", Kind.UNARY, "gate", fn="silu"), p.ew("out", Kind.MUL, "act", "up")
    program = TensorProgram("gated_mlp", sizes, (x, w, v), tuple(p.ops), {"out": o})

    b = Builder()
    b.load("x", x), b.load("w", w), b.load("v", v)
    b.reduce("gate_part", Kind.DOT, "x", "w", over="k"), b.accum("gate", "gate_part", "k")
    b.reduce("up_part", Kind.DOT, "x", "v", over="k"), b.accum("up", "up_part", "k")
    b.ew("act", Kind.UNARY, "gate", fn="silu"), b.ew("out", Kind.MUL, "act", "up")
    b.store("out", o)
    return Case(program, BlockGraph("gated_mlp", sizes, (x, w, v, o), tuple(b.ops), (Loop("k"),)))


def lora() -> Case:
    """x W + (x A) B in one loop: the low-rank product is accumulated beside the large one."""
    sizes = {"m": 16, "k": 2048, "n": 4096, "r": 16}
    x, w = tensor("x", "m k", sizes), tensor("w", "k n", sizes)
    a, bb, o = tensor("a", "k r", sizes), tensor("b", "r n", sizes), tensor("o", "m n", sizes)
    p = Builder()
    p.load("x", x), p.load("w", w), p.load("a", a), p.load("b", bb)
    p.reduce("base", Kind.DOT, "x", "w", over="k"), p.reduce("low", Kind.DOT, "x", "a", over="k")
    p.reduce("delta", Kind.DOT, "low", "b", over="r"), p.ew("out", Kind.ADD, "base", "delta")
    program = TensorProgram("lora", sizes, (x, w, a, bb), tuple(p.ops), {"out": o})

    b = Builder()
    b.load("x", x), b.load("w", w), b.load("a", a), b.load("b", bb)
    b.reduce("base_part", Kind.DOT, "x", "w", over="k"), b.reduce("low_part", Kind.DOT, "x", "a", over="k")
    b.reduce("delta_part", Kind.DOT, "low_part", "b", over="r")
    b.ew("both", Kind.ADD, "base_part", "delta_part"), b.accum("out", "both", "k")
    b.store("out", o)
    return Case(program, BlockGraph("lora", sizes, (x, w, a, bb, o), tuple(b.ops), (Loop("k"),)))


def attention() -> Case:
    """softmax(q k^T * scale) v with the division after the loop over the keys (FlashAttention without the maximum)."""
    sizes = {"h": 8, "m": 256, "n": 4096, "d": 64}
    q, k = tensor("q", "h m d", sizes), tensor("k", "h n d", sizes)
    v, o = tensor("v", "h n d", sizes), tensor("o", "h m d", sizes)
    v_e = Tensor("v", (("h",), ("n",), ("e",)), v.strides, "f16", "v")
    o_e = Tensor("o", (("h",), ("m",), ("e",)), o.strides, "f16", "o")
    sizes["e"] = 64
    p = Builder()
    p.load("q", q), p.load("k", k), p.load("v", v_e), p.const("scale", 0.125)
    p.reduce("s", Kind.DOT, "q", "k", over="d"), p.ew("c", Kind.MUL, "s", "scale"), p.ew("e_", Kind.EXP, "c")
    p.reduce("l", Kind.SUM, "e_", over="n"), p.ew("prob", Kind.DIV, "e_", "l")
    p.reduce("out", Kind.DOT, "prob", "v", over="n")
    program = TensorProgram("attention", sizes, (q, k, v_e), tuple(p.ops), {"out": o_e})

    b = Builder()
    b.load("q", q), b.load("k", k), b.load("v", v_e), b.const("scale", 0.125)
    b.reduce("s", Kind.DOT, "q", "k", over="d"), b.ew("c", Kind.MUL, "s", "scale"), b.ew("e_", Kind.EXP, "c")
    b.reduce("l_part", Kind.SUM, "e_", over="n"), b.accum("l", "l_part", "n")
    b.reduce("o_part", Kind.DOT, "e_", "v", over="n"), b.accum("acc", "o_part", "n")
    b.ew("out", Kind.DIV, "acc", "l"), b.store("out", o_e)
    return Case(program, BlockGraph("attention", sizes, (q, k, v_e, o_e), tuple(b.ops), (Loop("n"),)))


def n_trans() -> Case:
    """nGPT's update: norm(x + a (norm(y) - x)), normalised along h; rows whole, blocks over rows."""
    sizes = {"b": 64, "h": 1024}
    x, y = tensor("x", "b h", sizes), tensor("y", "b h", sizes)
    a, o = tensor("a", "h", sizes), tensor("o", "b h", sizes)
    p = Builder()
    p.load("x", x), p.load("y", y), p.load("a", a), p.const("minus", -1.0)
    p.ew("yy", Kind.MUL, "y", "y"), p.reduce("ys", Kind.SUM, "yy", over="h"), p.ew("yr", Kind.SQRT, "ys")
    p.ew("yn", Kind.DIV, "y", "yr"), p.ew("negx", Kind.MUL, "x", "minus"), p.ew("step", Kind.ADD, "yn", "negx")
    p.ew("scaled", Kind.MUL, "a", "step"), p.ew("moved", Kind.ADD, "x", "scaled")
    p.ew("mm", Kind.MUL, "moved", "moved"), p.reduce("ms", Kind.SUM, "mm", over="h"), p.ew("mr", Kind.SQRT, "ms")
    p.ew("out", Kind.DIV, "moved", "mr")
    program = TensorProgram("n_trans", sizes, (x, y, a), tuple(p.ops), {"out": o})
    b = Builder()
    b.ops = list(p.ops)
    b._axes = dict(p._axes)
    b.store("out", o)
    return Case(program, BlockGraph("n_trans", sizes, (x, y, a, o), tuple(b.ops)))


def gemm_chain() -> Case:
    """(a b) c with a nest: the loop over k inside the loop over n (MCFuser's deep tiling)."""
    sizes = {"m": 512, "k": 64, "n": 256, "h": 64}
    a, bt = tensor("a", "m k", sizes), tensor("b", "k n", sizes)
    c, o = tensor("c", "n h", sizes), tensor("o", "m h", sizes)
    p = Builder()
    p.load("a", a), p.load("b", bt), p.load("c", c)
    p.reduce("ab", Kind.DOT, "a", "b", over="k"), p.reduce("out", Kind.DOT, "ab", "c", over="n")
    program = TensorProgram("gemm_chain", sizes, (a, bt, c), tuple(p.ops), {"out": o})
    b = Builder()
    b.load("a", a), b.load("b", bt), b.load("c", c)
    b.reduce("ab_part", Kind.DOT, "a", "b", over="k"), b.accum("ab", "ab_part", "k")
    b.reduce("abc_part", Kind.DOT, "ab", "c", over="n"), b.accum("out", "abc_part", "n")
    b.store("out", o)
    block = BlockGraph("gemm_chain", sizes, (a, bt, c, o), tuple(b.ops), (Loop("n", (Loop("k"),)),))
    return Case(program, block)


CASES = {
    "rms_norm_linear": rms_norm_linear,
    "rms_norm_linear_late_sum": rms_norm_linear_late_sum,
    "gated_mlp": gated_mlp,
    "lora": lora,
    "attention": attention,
    "n_trans": n_trans,
    "gemm_chain": gemm_chain,
}

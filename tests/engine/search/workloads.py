"""Tensor programs of the papers' benchmarks, for the search's own bench and tests (Mirage §8, MCFuser §6)."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides


class Builder:
    """Writes a tensor program down, operator by operator; axes follow from the operands."""

    def __init__(self, name: str, **sizes: int) -> None:
        self.name, self.sizes = name, sizes
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self._axes: dict[str, tuple[str, ...]] = {}

    def input(self, name: str, *axes: str) -> str:
        dims = tuple((axis,) for axis in axes)
        self.tensors.append(Tensor(name, dims, contiguous_strides(dims, self.sizes), "f16", name))
        return self._op(name, Kind.LOAD, (), tuple(sorted(axes)), tensor=name)

    def const(self, name: str, value: float) -> str:
        return self._op(name, Kind.CONST, (), (), value=value)

    def elementwise(self, kind: Kind, name: str, *inputs: str, fn: str = "") -> str:
        axes = tuple(sorted({axis for i in inputs for axis in self._axes[i]}))
        return self._op(name, kind, inputs, axes, fn=fn)

    def mul(self, name: str, a: str, b: str) -> str:
        return self.elementwise(Kind.MUL, name, a, b)

    def add(self, name: str, a: str, b: str) -> str:
        return self.elementwise(Kind.ADD, name, a, b)

    def div(self, name: str, a: str, b: str) -> str:
        return self.elementwise(Kind.DIV, name, a, b)

    def sqrt(self, name: str, a: str) -> str:
        return self.elementwise(Kind.SQRT, name, a)

    def exp(self, name: str, a: str) -> str:
        return self.elementwise(Kind.EXP, name, a)

    def unary(self, fn: str, name: str, a: str) -> str:
        return self.elementwise(Kind.UNARY, name, a, fn=fn)

    def sum(self, name: str, a: str, *over: str) -> str:
        axes = tuple(axis for axis in self._axes[a] if axis not in over)
        return self._op(name, Kind.SUM, (a,), axes, over=tuple(sorted(over)))

    def dot(self, name: str, a: str, b: str, *over: str) -> str:
        axes = tuple(sorted((set(self._axes[a]) | set(self._axes[b])) - set(over)))
        return self._op(name, Kind.DOT, (a, b), axes, over=tuple(sorted(over)))

    def rms(self, name: str, x: str, axis: str, eps: bool = True) -> str:
        """x / sqrt(mean(x * x) + eps), without a weight."""
        square = self.mul(f"{name}_square", x, x)
        total = self.sum(f"{name}_total", square, axis)
        mean = self.mul(f"{name}_mean", total, self.const(f"{name}_scale", 1 / self.sizes[axis]))
        if eps:
            mean = self.add(f"{name}_shifted", mean, self.const(f"{name}_eps", 1e-6))
        return self.div(name, x, self.sqrt(f"{name}_root", mean))

    def program(self, output: str, *axes: str) -> TensorProgram:
        """axes: memory order of the output."""
        dims = tuple((axis,) for axis in axes)
        tensor = Tensor("out", dims, contiguous_strides(dims, self.sizes), "f16", "out")
        return TensorProgram(self.name, dict(self.sizes), tuple(self.tensors), tuple(self.ops), {output: tensor})

    def _op(
        self, name: str, kind: Kind, inputs: tuple[str, ...], axes: tuple[str, ...], over: tuple[str, ...] = (),
        tensor: str = "", value: float = 0.0, fn: str = "",
    ) -> str:  # fmt: skip
        self.ops.append(Op(name, kind, inputs, axes, over, tensor, value, fn))
        self._axes[name] = axes
        return name


def rmsnorm_linear(m: int = 2, h: int = 4096, n: int = 6144, eps: bool = True, weight: bool = True) -> TensorProgram:
    b = Builder("rmsnorm_linear", m=m, h=h, n=n)
    x = b.input("x", "m", "h")
    g = b.input("g", "h") if weight else ""
    w = b.input("w", "h", "n")
    normed = b.rms("norm", x, "h", eps)
    if weight:
        normed = b.mul("scaled", normed, g)
    return b.program(b.dot("y", normed, w, "h"), "m", "n")


def residual_rmsnorm_linear(m: int = 2, h: int = 4096, n: int = 6144) -> TensorProgram:
    b = Builder("residual_rmsnorm_linear", m=m, h=h, n=n)
    x, r, g, w = b.input("x", "m", "h"), b.input("r", "m", "h"), b.input("g", "h"), b.input("w", "h", "n")
    normed = b.mul("scaled", b.rms("norm", b.add("s", x, r), "h"), g)
    return b.program(b.dot("y", normed, w, "h"), "m", "n")


def gated_mlp(m: int = 8, h: int = 4096, n: int = 4096) -> TensorProgram:
    b = Builder("gated_mlp", m=m, h=h, n=n)
    x, w1, w2 = b.input("x", "m", "h"), b.input("w1", "h", "n"), b.input("w2", "h", "n")
    gate = b.unary("silu", "gate", b.dot("up", x, w1, "h"))
    return b.program(b.mul("y", gate, b.dot("value", x, w2, "h")), "m", "n")


def rmsnorm_gated_mlp(m: int = 8, h: int = 4096, n: int = 4096) -> TensorProgram:
    b = Builder("rmsnorm_gated_mlp", m=m, h=h, n=n)
    x, g = b.input("x", "m", "h"), b.input("g", "h")
    w1, w2 = b.input("w1", "h", "n"), b.input("w2", "h", "n")
    normed = b.mul("scaled", b.rms("norm", x, "h"), g)
    gate = b.unary("silu", "gate", b.dot("up", normed, w1, "h"))
    return b.program(b.mul("y", gate, b.dot("value", normed, w2, "h")), "m", "n")


def lora(m: int = 16, h: int = 256, n: int = 4096, r: int = 16) -> TensorProgram:
    b = Builder("lora", m=m, h=h, n=n, r=r)
    x, w, a, c = b.input("x", "m", "h"), b.input("w", "h", "n"), b.input("a", "h", "r"), b.input("b", "r", "n")
    low = b.dot("update", b.dot("low", x, a, "h"), c, "r")
    return b.program(b.add("y", b.dot("base", x, w, "h"), low), "m", "n")


def norm_transformer(m: int = 8, d: int = 4096) -> TensorProgram:
    b = Builder("norm_transformer", m=m, d=d)
    x, hidden, alpha = b.input("x", "m", "d"), b.input("h", "m", "d"), b.input("alpha", "m", "d")
    minus = b.mul("minus_x", x, b.const("minus_one", -1.0))
    step = b.mul("step", alpha, b.add("diff", b.rms("norm_h", hidden, "d", eps=False), minus))
    return b.program(b.rms("y", b.add("moved", x, step), "d", eps=False), "m", "d")


def attention(b_: int = 2, q: int = 256, kv: int = 4096, d: int = 64, norm: bool = False) -> TensorProgram:
    """Softmax attention; norm: with RMS-normalised queries and keys (QKNorm)."""
    b = Builder("qknorm_attention" if norm else "gqa_attention", b=b_, q=q, n=kv, d=d, e=d)
    query, key, value = b.input("Q", "b", "q", "d"), b.input("K", "b", "n", "d"), b.input("V", "b", "n", "e")
    if norm:
        query, key = b.rms("qn", query, "d"), b.rms("kn", key, "d")
    scores = b.mul("scores", b.dot("s", query, key, "d"), b.const("scale", d**-0.5))
    weights = b.exp("p", scores)
    probabilities = b.div("probs", weights, b.sum("l", weights, "n"))
    return b.program(b.dot("o", probabilities, value, "n"), "b", "q", "e")


def gemm_chain(batch: int = 1, m: int = 512, n: int = 256, k: int = 64, h: int = 64) -> TensorProgram:
    b = Builder("gemm_chain", b=batch, m=m, n=n, k=k, h=h)
    first, second, third = b.input("A", "b", "m", "k"), b.input("B", "b", "k", "n"), b.input("D", "b", "n", "h")
    return b.program(b.dot("y", b.dot("ab", first, second, "k"), third, "n"), "b", "m", "h")


WORKLOADS: dict[str, Callable[[], TensorProgram]] = {
    "rmsnorm_linear": rmsnorm_linear,
    "gated_mlp": gated_mlp,
    "lora": lora,
    "norm_transformer": norm_transformer,
    "gqa_attention": attention,
    "qknorm_attention": lambda: attention(norm=True),
    "rmsnorm_gated_mlp": rmsnorm_gated_mlp,
    "residual_rmsnorm_linear": residual_rmsnorm_linear,
    "gemm_chain": gemm_chain,
}

"""Block graphs with sums of matrix products: of rotated halves, of several operands."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.tensors import DType

from tests.engine.codegen.graphs import Graph, nest


def halved_attention(b: int, q: int, kv: int, r: int, e: int, *, dtype: DType = "f16") -> BlockGraph:
    """softmax(q1 @ k1.T + q2 @ k2.T) @ v: queries and keys lie in two halves, as rotations leave them."""
    g = Graph("halved_attention", {"b": b, "q": q, "kv": kv, "r": r, "e": e}, nest("kv"), dtype)
    first = g.dot("first", g.load("q1", "b q r"), g.load("k1", "b kv r"), "r")
    second = g.dot("second", g.load("q2", "b q r"), g.load("k2", "b kv r"), "r")
    p = g.exp("p", g.mul("scaled", g.add("scores", first, second), g.const("scale", 0.125)))
    weighted = g.accum("acc", g.dot("weighted", p, g.load("v", "b kv e"), "kv"), "kv")
    total = g.accum("total", g.sum("total_part", p, "kv"), "kv")
    g.store(g.div("o", weighted, total), "out", "b q e")
    return g.build()


def three_products(m: int, k: int, h: int, n: int) -> BlockGraph:
    """x @ w + (x @ u + y @ v), with y's rows of another length, and the sigmoid of x @ w besides."""
    g = Graph("three_products", {"m": m, "k": k, "h": h, "n": n})
    x, y = g.load("x", "m k"), g.load("y", "m h")
    one = g.dot("one", x, g.load("w", "k n"), "k")
    inner = g.add("inner", g.dot("two", x, g.load("u", "k n"), "k"), g.dot("three", y, g.load("v", "h n"), "h"))
    gate = g.unary("gate", "sigmoid", one)
    g.store(g.mul("gated", g.add("all", one, inner), gate), "out", "m n")
    return g.build()

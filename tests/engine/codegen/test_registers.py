"""What the compiler makes of thread graphs: a tile that stays in registers by their rules does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.registers import leaving
from mugraph.optimizer.thread_fusion import fuse_threads

from tests.engine.ir.graphs import Ops, tensor, transposed

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")

SIZES = {"m": 64, "k": 64, "n": 64}


def block(*, build: Callable[[Ops], str]) -> BlockGraph:
    """Of x @ w and the loaded tiles r and t, t with its columns side by side in memory; without what is not used."""
    names = (("x", "m", "k"), ("w", "k", "n"), ("r", "m", "n"), ("y", "m", "n"))
    *inputs, output = (tensor(name, ((row,), (column,)), SIZES) for name, row, column in names)
    tensors = (*inputs, transposed("t", "m", "n", SIZES), output)
    ops = Ops(tensors)
    for name in ("x", "w", "r", "t"):
        ops.load(name.upper(), name)
    ops.store("out", build(ops), "y")
    needed = {"out"}
    for op in reversed(ops.ops):
        needed.update(op.inputs if op.name in needed else ())
    live = tuple(op for op in ops.ops if op.name in needed)
    used = {op.tensor for op in live}
    return BlockGraph("kernel", SIZES, tuple(each for each in tensors if each.name in used), live)


def softmax_of_product(ops: Ops) -> str:
    ops.reduce("xw", Kind.DOT, "X", "W", over="k"), ops.const("scale", 0.125), ops.op("scores", Kind.MUL, "xw", "scale")
    ops.op("p", Kind.EXP, "scores"), ops.reduce("row", Kind.SUM, "p", over="n")
    return ops.op("z", Kind.DIV, "p", "row")


def norm(ops: Ops) -> str:
    ops.op("rr", Kind.MUL, "R", "R"), ops.reduce("ss", Kind.SUM, "rr", over="n"), ops.op("rms", Kind.SQRT, "ss")
    return ops.op("z", Kind.DIV, "R", "rms")


def product_over_norm(ops: Ops) -> str:
    """A number for each row goes from the loaded tile's rows to the product's."""
    norm(ops)
    return ops.op("zz", Kind.DIV, ops.reduce("xw", Kind.DOT, "X", "W", over="k"), "rms")


def product_and_loaded(ops: Ops) -> str:
    """What is loaded changes places before anything is computed of it."""
    ops.op("bent", Kind.UNARY, "T", fn="tanh")
    return ops.op("z", Kind.ADD, ops.reduce("xw", Kind.DOT, "X", "W", over="k"), "bent")


def product_and_norm(ops: Ops) -> str:
    return ops.op("zz", Kind.ADD, ops.reduce("xw", Kind.DOT, "X", "W", over="k"), norm(ops))


def two_norms(ops: Ops) -> str:
    norm(ops)
    ops.reduce("largest", Kind.AMAX, "T", over="n"), ops.op("other", Kind.MUL, "T", "largest")
    return ops.op("zz", Kind.ADD, "z", "other")


def exchanged(ttgir: str) -> list[str]:
    """Computed tiles that change places before more is computed of them: what is stored or multiplied is float16."""
    operation = dict(re.findall(r"(%\w+)(?::\d+)? = \"?([\w.]+)", ttgir))
    moved = re.findall(r"ttg\.convert_layout (%\w+)\S* : tensor<(\d+)x(\d+)xf32", ttgir)
    return [
        value
        for value, rows, columns in moved
        if operation[value].startswith(("arith.", "math.")) and min(int(rows), int(columns)) > 1
    ]


@pytest.mark.parametrize(
    ("build", "threads", "tiles"),
    [
        (softmax_of_product, ["z"], 0),
        (norm, ["z"], 0),
        (product_over_norm, ["zz"], 0),
        (product_and_loaded, ["z"], 0),
        (product_and_norm, ["z", "zz"], 1),
        (two_norms, ["z", "other"], 1),
    ],
)
def test_tiles_of_a_thread_graph_stay_in_registers(
    build: Callable[[Ops], str], threads: list[str], tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import triton

    compiler: Any = triton
    compile_one = compiler.compile
    texts: list[str] = []

    def kept(*args: Any, **options: Any) -> Any:
        built = compile_one(*args, **options)
        texts.append(str(built.asm["ttgir"]))
        return built

    monkeypatch.setattr(triton, "compile", kept)
    graph = block(build=build)
    assert [thread.name for thread in fuse_threads(graph)] == threads
    compile_for(lower(graph, Schedule((("m", 64),))), 90)
    (text,) = texts
    assert "tt.store" in text
    assert len(exchanged(text)) == tiles
    reason = leaving(graph)
    ops = {op.name: op for op in graph.ops}
    pairs = [(ops[name], user) for user in graph.ops for name in user.inputs]
    assert any("other threads" in reason(*pair) for pair in pairs) == bool(tiles)

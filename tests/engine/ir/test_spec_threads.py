"""Each rule of thread graphs, with one that violates it and nothing else; and what stays in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph, ThreadGraph
from mugraph.ir.ops import Kind
from mugraph.ir.registers import leaving
from mugraph.ir.spec import check_mugraph

from tests.engine.ir.graphs import Ops, attention, gated_mlp, rmsnorm_matmul, single, tensor, transposed


def kernel_of(graph: MuGraph) -> GraphKernel:
    (kernel,) = graph.kernels
    assert isinstance(kernel, GraphKernel)
    return kernel


def with_threads(graph: MuGraph, *threads: tuple[Sequence[str], Sequence[str]]) -> MuGraph:
    """The graph with these thread graphs instead: what each reads, and its operators."""
    kernel = kernel_of(graph)
    ops = {op.name: op for op in kernel.block.ops}
    made = [ThreadGraph(names[-1], tuple(reads), tuple(ops[name] for name in names)) for reads, names in threads]
    return replace(graph, kernels=(replace(kernel, threads=tuple(made)),))


def changed(change: Callable[[ThreadGraph], ThreadGraph]) -> MuGraph:
    graph = gated_mlp()
    kernel = kernel_of(graph)
    return replace(graph, kernels=(replace(kernel, threads=(change(kernel.threads[0]),)),))


@pytest.mark.parametrize(
    ("graph", "violation"),
    [
        (changed(lambda thread: replace(thread, ops=())), "gated_mlp: thread graph z is empty"),
        (
            changed(lambda thread: replace(thread, name="y")),
            "gated_mlp: thread graph y is not named after its last operator, z",
        ),
        (
            changed(lambda thread: replace(thread, inputs=("gated",))),
            "gated_mlp: thread graph z reads ['gated', 'raised'], not ['gated']",
        ),
        (
            changed(lambda thread: replace(thread, ops=(replace(thread.ops[0], fn="tanh"), thread.ops[1]))),
            "gated_mlp: thread graph z: activated is no operator of the block graph",
        ),
        (
            with_threads(rmsnorm_matmul(), (["X"], ["xx", "ss", "squares"])),
            "rmsnorm_matmul: thread graph squares: squares is accum, which is no operator of thread graphs",
        ),
        (
            with_threads(rmsnorm_matmul(), (["W"], ["X", "G", "xg"])),
            "rmsnorm_matmul: thread graph xg: G is load, which is no operator of thread graphs",
        ),
        (
            with_threads(rmsnorm_matmul(), (["X", "G", "W"], ["xg", "xgw"])),
            "rmsnorm_matmul: thread graph xgw: xgw reads xg from shared memory, as a product does its operands",
        ),
        (
            with_threads(attention(), (["V", "qk"], ["scores", "p", "pv"])),
            "attention: thread graph pv: row outside it uses p, which stays in registers",
        ),
        (
            with_threads(rmsnorm_matmul(), (["squares", "product"], ["rms", "mean", "z"])),
            "rmsnorm_matmul: thread graph z: its operators are not in the order of the block graph",
        ),
        (
            with_threads(rmsnorm_matmul(), (["X", "squares"], ["xx", "mean", "rms"])),
            "rmsnorm_matmul: thread graph rms: ss outside it uses xx, which stays in registers",
        ),
        (
            with_threads(rmsnorm_matmul(), (["squares"], ["mean", "rms"]), (["product", "rms"], ["rms", "z"])),
            "rmsnorm_matmul: rms is in the thread graphs rms and z",
        ),
    ],
)
def test_rules(graph: MuGraph, violation: str) -> None:
    assert f"kernel {violation}" in check_mugraph(graph)


@pytest.mark.parametrize(
    "graph",
    [
        with_threads(gated_mlp(), (["gated"], ["activated"])),
        with_threads(rmsnorm_matmul(), (["X"], ["xx", "ss"])),
        with_threads(attention(), (["Q", "K"], ["qk", "scores", "p"])),
        with_threads(attention(), (["Q", "K"], ["qk"]), (["qk"], ["scores", "p"])),
    ],
)
def test_smaller_thread_graphs_are_valid(graph: MuGraph) -> None:
    assert check_mugraph(graph) == []


def test_two_passes_are_two_thread_graphs() -> None:
    """A row that is read in a loop, and again in another pass over it."""
    sizes = {"b": 16, "h": 1024}
    x, y = tensor("x", (("b",), ("h",)), sizes), tensor("y", (("b",), ("h",)), sizes)
    ops = Ops((x, y))
    ops.load("X", "x")
    ops.op("xx", Kind.MUL, "X", "X"), ops.reduce("ss", Kind.SUM, "xx", over="h"), ops.accum("squares", "ss", "h")
    ops.op("grown", Kind.EXP, "X"), ops.op("scaled", Kind.MUL, "grown", "squares")
    ops.store("out", "scaled", "y")
    block = BlockGraph("passes", sizes, (x, y), tuple(ops.ops), loops=kernel_of(rmsnorm_matmul()).block.loops)
    graph = single(block, Schedule((("b", 16),), {"h": 256}))
    assert [thread.name for thread in kernel_of(graph).threads] == ["ss"]
    assert "kernel passes: thread graph scaled: scaled runs in another phase than grown" in check_mugraph(
        with_threads(graph, (["X", "squares"], ["grown", "scaled"]))
    )


def test_what_is_computed_before_a_loop_is_no_part_of_its_thread_graphs() -> None:
    sizes = {"b": 16, "h": 1024}
    x, g, y = tensor("x", (("b",), ("h",)), sizes), tensor("g", (("b",),), sizes), tensor("y", (("b",),), sizes)
    ops = Ops((x, g, y))
    ops.load("X", "x"), ops.load("G", "g"), ops.op("grown", Kind.EXP, "G"), ops.op("scaled", Kind.MUL, "X", "grown")
    ops.reduce("ss", Kind.SUM, "scaled", over="h"), ops.accum("squares", "ss", "h"), ops.store("out", "squares", "y")
    block = BlockGraph("hoisted", sizes, (x, g, y), tuple(ops.ops), loops=kernel_of(rmsnorm_matmul()).block.loops)
    graph = single(block, Schedule((("b", 16),), {"h": 256}))
    assert [[op.name for op in thread.ops] for thread in kernel_of(graph).threads] == [["scaled", "ss"]]
    assert "kernel hoisted: thread graph ss: scaled runs in another phase than grown" in check_mugraph(
        with_threads(graph, (["G", "X"], ["grown", "scaled", "ss"]))
    )


def test_a_value_that_nothing_uses() -> None:
    ops = Ops((x := tensor("x", (("b",),), {"b": 16}), y := tensor("y", (("b",),), {"b": 16})))
    ops.load("X", "x"), ops.op("lost", Kind.EXP, "X"), ops.op("kept", Kind.SQRT, "X"), ops.store("out", "kept", "y")
    graph = single(BlockGraph("dead", {"b": 16}, (x, y), tuple(ops.ops)), Schedule((("b", 16),)))
    assert "kernel dead: thread graph kept: nothing uses lost" in check_mugraph(
        with_threads(graph, (["X"], ["lost", "kept"]))
    )


def joined(share: str, transposed_second: bool = False) -> BlockGraph:
    """x @ w, loaded tiles `r` and `s`, and a tile `part` of them that is added to the product, or to the other tile.

    share: what `part` is made of
    """
    sizes = {"m": 64, "k": 64, "n": 64}
    second = transposed("s", "m", "n", sizes) if transposed_second else tensor("s", (("m",), ("n",)), sizes)
    names = (("x", "m", "k"), ("w", "k", "n"), ("r", "m", "n"), ("y", "m", "n"))
    tensors = tuple(tensor(name, ((row,), (column,)), sizes) for name, row, column in names)
    ops = Ops((*tensors, second))
    ops.load("X", "x"), ops.load("W", "w"), ops.load("R", "r"), ops.load("S", "s")
    ops.reduce("product", Kind.DOT, "X", "W", over="k")
    ops.op("bent", Kind.UNARY, "R", fn="tanh")
    ops.reduce("row", Kind.SUM, "bent", over="n")
    ops.reduce("product_row", Kind.AMAX, "product", over="n")
    match share:
        case "loaded":
            part = ops.op("part", Kind.EXP, "bent")
        case "loaded and its row":
            part = ops.op("part", Kind.DIV, "bent", "row")
        case "loaded and the product's row":
            part = ops.op("part", Kind.DIV, "bent", "product_row")
        case _:
            part = ops.op("part", Kind.SQRT, "row")
    ops.op("with_product", Kind.ADD, "product", part)
    ops.reduce("other_row", Kind.SUM, "S", over="n")
    ops.op("other", Kind.DIV, "S", "other_row")
    ops.op("with_other", Kind.ADD, "other", part)
    ops.op("z", Kind.MUL, "with_product", "with_other")
    ops.store("out", "z", "y")
    return BlockGraph("joined", sizes, (*tensors[:3], second, tensors[3]), tuple(ops.ops))


@pytest.mark.parametrize(
    ("share", "transposed_second", "into_product", "into_other"),
    [
        ("loaded", False, True, True),
        ("loaded", True, True, True),
        ("loaded and its row", False, False, True),
        ("loaded and its row", True, False, False),
        ("loaded and the product's row", False, True, True),
        ("a row", True, True, True),
    ],
)
def test_what_lies_in_other_registers(
    share: str, transposed_second: bool, into_product: bool, into_other: bool
) -> None:
    """A tile that a sum of loaded values went into meets a product's, and a tile that lies otherwise in memory."""
    block = joined(share, transposed_second)
    ops = {op.name: op for op in block.ops}
    leaves = leaving(block)
    assert (not leaves(ops["part"], ops["with_product"])) == into_product
    assert (not leaves(ops["part"], ops["with_other"])) == into_other
    assert not leaves(ops["product"], ops["with_product"])
    assert not leaves(ops["product"], ops["product_row"])
    assert leaves(ops["R"], ops["bent"]) == "R is load, which is no operator of thread graphs"
    if not into_product:
        reason = "with_product needs the elements of part in registers of other threads"
        assert leaves(ops["part"], ops["with_product"]) == reason

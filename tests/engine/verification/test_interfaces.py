"""A graph is the program's only where its memory is: shapes, strides, types, windows, what is one piece of memory and
what is two, and what one kernel leaves for the next; nothing of it is taken on trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window
from mugraph.optimizer.thread_fusion import fuse_threads
from mugraph.verification.document import verify_document
from mugraph.verification.verdict import Verdict

from tests.engine.verification.documents import one_kernel, two_kernels
from tests.engine.verification.graphs import Builder, Case, gated_mlp, n_trans, rms_norm_linear, tensor

NORM = Schedule((("n", 64), ("b", 16)), {"h": 64})
MLP = Schedule((("n", 64), ("m", 8)), {"k": 64})


def verdict_of(program: TensorProgram, graph: MuGraph) -> Verdict:
    (verdict,) = verify_document(program, [graph], seed=1)
    return verdict


def norm(threads: bool = False) -> tuple[TensorProgram, MuGraph]:
    case = rms_norm_linear()
    graph = one_kernel(case, NORM)
    kernel = graph.kernels[0]
    assert isinstance(kernel, GraphKernel)
    return case.program, replace(graph, kernels=(replace(kernel, threads=fuse_threads(case.block) if threads else ()),))


def with_tensor(graph: MuGraph, name: str, change: Callable[[Tensor], Tensor], *, outer: bool = True) -> MuGraph:
    """The tensor changed in every kernel, and in the kernel graph."""

    def changed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(change(t) if t.name == name else t for t in tensors)

    kernels: list[GraphKernel] = []
    for kernel in graph.kernels:
        assert isinstance(kernel, GraphKernel)
        kernels.append(replace(kernel, block=replace(kernel.block, tensors=changed(kernel.block.tensors))))
    return replace(graph, tensors=changed(graph.tensors) if outer else graph.tensors, kernels=tuple(kernels))


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "strides exchanged": lambda t: replace(t, strides=t.strides[::-1]),
    "strides of a wider tensor": lambda t: replace(t, strides=tuple(2 * s for s in t.strides)),
    "expanded": lambda t: replace(t, strides=(0, *t.strides[1:])),
    "another type": lambda t: replace(t, dtype="bf16"),
    "one of 32 bits": lambda t: replace(t, dtype="f32"),
}


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("name", ["x", "w", "z"])
@pytest.mark.parametrize("change", CHANGES)
def test_memory_that_is_not_the_programs(change: str, name: str, outer: bool) -> None:
    program, graph = norm()
    assert verdict_of(program, graph).passed
    verdict = verdict_of(program, with_tensor(graph, name, CHANGES[change], outer=outer))
    assert not verdict.passed
    assert name in (verdict.reason or "")


@pytest.mark.parametrize("change", CHANGES)
def test_what_two_kernels_hand_over_lies_where_it_is_read(change: str) -> None:
    program, graph = rms_norm_linear().program, two_kernels()
    assert verdict_of(program, graph).passed
    last = graph.kernels[-1]
    assert isinstance(last, GraphKernel)
    tensors = tuple(CHANGES[change](t) if t.name == "acc" else t for t in last.block.tensors)
    if tensors == last.block.tensors:
        return
    broken = replace(graph, kernels=(graph.kernels[0], replace(last, block=replace(last.block, tensors=tensors))))
    assert "acc" in (verdict_of(program, broken).reason or "")
    outer = tuple(t if t.name != "acc" else CHANGES[change](t) for t in graph.tensors)
    assert "acc" in (verdict_of(program, replace(broken, tensors=outer)).reason or "")


def test_the_stride_of_one_element_says_nothing() -> None:
    case = n_trans()
    sizes = {"b": 1, "h": 1024}

    def one(t: Tensor) -> Tensor:
        return replace(t, strides=(7, 1)) if len(t.dims) == 2 else t

    program = replace(case.program, sizes=sizes)
    block = replace(case.block, sizes=sizes)
    graph = one_kernel(Case(program, block), Schedule((("b", 1),)))
    assert verdict_of(program, graph).passed
    odd = with_tensor(with_tensor(graph, "x", one), "o", one, outer=False)
    assert verdict_of(program, odd).passed


def test_one_piece_of_memory_and_two() -> None:
    """x @ y.T of two tensors, and a graph that says they are one."""
    sizes = {"i": 64, "j": 64, "k": 32}
    x, y, z = tensor("x", "i k", sizes), tensor("y", "j k", sizes), tensor("z", "i j", sizes)
    p = Builder()
    p.load("xv", x), p.load("yv", y), p.reduce("out", Kind.DOT, "xv", "yv", over="k")
    program = TensorProgram("product", sizes, (x, y), tuple(p.ops), {"out": z})
    b = Builder()
    b.load("xv", x), b.load("yv", y), b.reduce("part", Kind.DOT, "xv", "yv", over="k"), b.accum("out", "part", "k")
    b.store("out", z)
    block = BlockGraph("product", sizes, (x, y, z), tuple(b.ops), (Loop("k"),))
    graph = one_kernel(Case(program, block), Schedule((("i", 16), ("j", 16)), {"k": 16}))
    assert verdict_of(program, graph).passed
    aliased = with_tensor(graph, "y", lambda t: replace(t, source="x"))
    assert "one piece of memory" in (verdict_of(program, aliased).reason or "")
    both = replace(program, tensors=(x, replace(y, source="x")))
    assert verdict_of(both, aliased).passed


def dropped(graph: MuGraph) -> MuGraph:
    return with_threads(graph, lambda t: replace(t, ops=tuple(op for op in t.ops if op.name != "mean")))


def with_threads(graph: MuGraph, change: Callable[..., object]) -> MuGraph:
    kernel = graph.kernels[0]
    assert isinstance(kernel, GraphKernel)
    assert kernel.threads
    first, *others = sorted(kernel.threads, key=lambda t: -sum(op.kind is Kind.CONST for op in t.ops))
    threads = (change(first), *others)
    return replace(graph, kernels=(replace(kernel, threads=threads),))  # type: ignore[arg-type]


THREADS: dict[str, Callable[[MuGraph], MuGraph]] = {
    "an operator is missing": dropped,
    "another order": lambda g: with_threads(g, lambda t: replace(t, ops=t.ops[::-1], name=t.ops[0].name)),
    "another name": lambda g: with_threads(g, lambda t: replace(t, name="other")),
    "another input": lambda g: with_threads(g, lambda t: replace(t, inputs=("w", *t.inputs[1:]))),
    "an input twice": lambda g: with_threads(g, lambda t: replace(t, inputs=(*t.inputs, t.inputs[0]))),
    "an input too few": lambda g: with_threads(g, lambda t: replace(t, inputs=t.inputs[1:])),
    "another operator": lambda g: with_threads(
        g, lambda t: replace(t, ops=(*t.ops[:-1], replace(t.ops[-1], kind=Kind.ADD)))
    ),
    "another constant": lambda g: with_threads(
        g, lambda t: replace(t, ops=tuple(replace(o, value=0.5) if o.kind is Kind.CONST else o for o in t.ops))
    ),
    "nothing": lambda g: with_threads(g, lambda t: replace(t, ops=(), inputs=())),
}


@pytest.mark.parametrize("name", THREADS)
def test_a_thread_graph_is_a_group_of_the_blocks_operators(name: str) -> None:
    program, graph = norm(threads=True)
    assert verdict_of(program, graph).passed
    verdict = verdict_of(program, THREADS[name](graph))
    assert "thread graph" in (verdict.reason or "")


def mlp(k: int) -> MuGraph:
    """gated MLP with products of another depth."""
    case = gated_mlp()
    sizes = {**case.block.sizes, "k": k}
    tensors = tuple(tensor(t.name, " ".join(t.axes), sizes) for t in case.block.tensors)
    return one_kernel(Case(case.program, replace(case.block, sizes=sizes, tensors=tensors)), MLP)


def test_an_axis_of_half_its_size() -> None:
    """Above four million elements, where not all of it can be run."""
    program = gated_mlp().program
    right = verdict_of(program, mlp(4096))
    assert right.passed, right.reason
    assert "full size" in (right.indexing or "")
    assert "x" in (verdict_of(program, mlp(2048)).reason or "")
    half = mlp(2048)
    apart = with_tensor(half, "x", lambda t: replace(t, strides=(4096, 1)))
    assert not verdict_of(program, apart).passed


SCHEDULES: dict[str, Schedule] = {
    "no loop": replace(MLP, loops={}),
    "a tile of nothing": replace(MLP, loops={"k": 0}),
    "a negative tile": replace(MLP, loops={"k": -5}),
    "no power of two": replace(MLP, loops={"k": 48}),
    "a grid tile of nothing": replace(MLP, grid=(("n", 0), ("m", 8))),
    "minus one warp": replace(MLP, num_warps=-1),
    "no stage": replace(MLP, num_stages=0),
    "an unknown grid axis": replace(MLP, grid=(("n", 64), ("q", 8))),
    "an unknown loop": replace(MLP, loops={"k": 64, "q": 64}),
    "an axis twice": replace(MLP, grid=(("n", 64), ("n", 64))),
    "the reduced axis on the grid": replace(MLP, grid=(("k", 64), ("n", 64)), loops={}),
    "a library's": replace(MLP, library=True),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_schedule_is_looked_at_whatever_the_size(name: str) -> None:
    case = gated_mlp()
    verdict = verdict_of(case.program, one_kernel(case, SCHEDULES[name]))
    assert not verdict.passed
    assert verdict.reason


def test_sizes_that_no_kernel_has() -> None:
    case = gated_mlp()
    graph = one_kernel(case, MLP)
    assert not verdict_of(case.program, replace(graph, sizes={**graph.sizes, "k": 2048})).passed
    assert not verdict_of(case.program, replace(graph, sizes={**graph.sizes, "n": 0})).passed
    assert not verdict_of(case.program, replace(graph, inputs=("x", "w"))).passed
    assert not verdict_of(case.program, replace(graph, outputs=("x",))).passed
    assert not verdict_of(case.program, replace(graph, outputs=())).passed
    assert not verdict_of(case.program, replace(graph, outputs=("o", "o"))).passed
    assert not verdict_of(case.program, replace(graph, inputs=("x", "w", "v", "v"))).passed
    assert not verdict_of(case.program, replace(graph, kernels=())).passed


def with_ops(case: Case, ops: list[Op]) -> MuGraph:
    return one_kernel(replace(case, block=replace(case.block, ops=tuple(ops))), MLP)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("gate", {"fn": "min"}),
        ("act", {"fn": "sillu"}),
        ("act", {"value": 2.0}),
        ("act", {"rows": ("m",), "columns": ("n",)}),
        ("act", {"tensor": "x"}),
        ("act", {"over": ("k",)}),
        ("x", {"fn": "silu"}),
    ],
)
def test_fields_that_mean_nothing(name: str, fields: dict[str, object]) -> None:
    case = gated_mlp()
    ops = [replace(op, **fields) if op.name == name else op for op in case.block.ops]  # type: ignore[arg-type]
    verdict = verdict_of(case.program, with_ops(case, ops))
    assert not verdict.passed
    assert name in (verdict.reason or "")


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("kind", [Kind.CONST, Kind.MASK])
def test_constants_that_are_no_numbers(value: float, kind: Kind) -> None:
    case = gated_mlp()
    odd = Op("odd", kind, value=value, axes=("m", "n") if kind is Kind.MASK else ())
    if kind is Kind.MASK:
        odd = replace(odd, rows=("m",), columns=("n",))
    ops: list[Op] = []
    for op in case.block.ops:
        ops += [odd, replace(op, inputs=("gate", "odd"), fn="", kind=Kind.MUL)] if op.name == "act" else [op]
    verdict = verdict_of(case.program, with_ops(case, ops))
    assert "odd" in (verdict.reason or "")


@pytest.mark.parametrize("last", [1.0, 2.0])
def test_a_chain_of_two_thousand_operators(last: float) -> None:
    sizes = {"b": 8, "h": 16}
    x, z = tensor("x", "b h", sizes), tensor("z", "b h", sizes)

    def chain(end: float) -> list[Op]:
        b = Builder()
        b.load("v0", x), b.const("half", 0.5), b.const("end", end)
        for number in range(2000):
            b.ew(f"v{number + 1}", Kind.ADD, f"v{number}", "half" if number < 1999 else "end")
        return b.ops

    program = TensorProgram("chain", sizes, (x,), tuple(chain(1.0)), {"v2000": z})
    store = Op("store", Kind.STORE, ("v2000",), ("b", "h"), tensor="z")
    block = BlockGraph("chain", sizes, (x, z), (*chain(last), store))
    verdict = verdict_of(program, one_kernel(Case(program, block), Schedule((("b", 4),))))
    assert verdict.passed is (last == 1.0), verdict.reason


def test_a_chain_of_squares_has_no_bound_and_says_so() -> None:
    sizes = {"b": 8, "h": 16}
    x, z = tensor("x", "b h", sizes), tensor("z", "b h", sizes)
    b = Builder()
    b.load("v0", x)
    for number in range(1500):
        b.ew(f"v{number + 1}", Kind.MUL, f"v{number}", f"v{number}")
    program = TensorProgram("squares", sizes, (x,), tuple(b.ops), {"v1500": z})
    b.store("v1500", z)
    block = BlockGraph("squares", sizes, (x, z), tuple(b.ops))
    verdict = verdict_of(program, one_kernel(Case(program, block), Schedule((("b", 4),))))
    assert verdict.passed
    assert verdict.bound is None
    assert "degree" in (verdict.bound_note or "")


@pytest.mark.parametrize("seed", range(12))
def test_operators_out_of_order(seed: int) -> None:
    """Never a traceback, wherever an operator stands."""
    case = rms_norm_linear()
    ops = list(case.block.ops)
    ops.insert((7 * seed + 3) % len(ops), ops.pop((5 * seed + 1) % len(ops)))
    graph = one_kernel(replace(case, block=replace(case.block, ops=tuple(ops))), NORM)
    kernel = graph.kernels[0]
    assert isinstance(kernel, GraphKernel)
    threaded = replace(graph, kernels=(replace(kernel, threads=fuse_threads(case.block)),))
    for one in (graph, threaded):
        verdict = verdict_of(case.program, one)
        assert verdict.passed or verdict.reason


@pytest.mark.parametrize(
    "window", [Window(7, 1), Window(-1, 0), Window(0, 9), Window(0, 0, stride=-1), Window(1, 1, dilation=0)]
)
def test_windows_that_are_none(window: Window) -> None:
    program, graph = norm()
    verdict = verdict_of(program, with_tensor(graph, "x", lambda t: replace(t, windows=(window,))))
    assert "x" in (verdict.reason or "")

"""Random valid μGraphs and tensor programs (hypothesis)."""

from __future__ import annotations

from math import prod

from hypothesis import assume
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph, ThreadGraph
from mugraph.ir.ops import LARGEST, Kind
from mugraph.ir.placement import loop_paths, varying
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec.schedule import schedule_violations
from mugraph.ir.tensors import Dims, Sizes, Tensor, contiguous_strides

from tests.engine.ir.graphs import Ops

AXES = ("b", "h", "n", "d'", "s·2", "half")
SOURCES = ("", "x", "self.up.weight", 'f"{a}"[0] \\ é')
BINARY = (Kind.ADD, Kind.MUL, Kind.DIV, Kind.MAX)


@st.composite
def tensors(draw: st.DrawFn, name: str, axes: tuple[str, ...], sizes: Sizes, *, plain: bool) -> Tensor:
    """Over exactly these axes, in any order, in dimensions of 0 to 2 axes; row-major if plain."""
    order = draw(st.permutations(axes))
    dims: list[tuple[str, ...]] = []
    while order:
        count = draw(st.integers(0, 2))
        dims.append(tuple(order[:count]))
        order = order[count:]
    shape: Dims = tuple(dims)
    strides = contiguous_strides(shape, sizes)
    if not plain and draw(st.booleans()):
        strides = tuple(draw(st.sampled_from((0, stride, 2 * stride))) for stride in strides)
    dtype = draw(st.sampled_from(("f16", "bf16", "f32")))
    skew = 0 if plain else draw(st.integers(0, 7))
    return Tensor(name, shape, strides, dtype, draw(st.sampled_from(SOURCES)), skew=skew)


def subsets(axes: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(axes), unique=True, max_size=3).map(tuple)


def pointwise(draw: st.DrawFn, ops: Ops, values: list[str], prefix: str) -> None:
    """Adds up to five operators on values of the list to the graph, and their results to the list."""
    for index in range(draw(st.integers(0, 5))):
        name, f32 = f"{prefix}{index}", draw(st.booleans())
        one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        match draw(st.integers(0, 4)):
            case 0:
                ops.op(name, draw(st.sampled_from((Kind.SQRT, Kind.EXP))), one, f32=f32)
            case 1:
                ops.op(name, Kind.UNARY, one, fn=draw(st.sampled_from(("silu", "tanh"))), f32=f32)
            case 2:
                ops.const(name, draw(st.floats(allow_nan=False)))
            case _:
                ops.op(name, draw(st.sampled_from(BINARY)), one, other, f32=f32)
        values.append(name)


def reduced_inside(draw: st.DrawFn, ops: Ops, values: list[str]) -> None:
    """Perhaps adds a product or a largest value to the graph, and operators on its result."""
    one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    shared = sorted(ops.axes(one) & ops.axes(other))
    if shared and draw(st.booleans()):
        operands = (Kind.DOT, one, other) if draw(st.booleans()) else (Kind.AMAX, one)
        values.append(ops.reduce("inside", *operands, over=draw(st.sampled_from(shared))))
        pointwise(draw, ops, values, "u")


@st.composite
def block_graphs(draw: st.DrawFn, name: str = "kernel") -> tuple[BlockGraph, Schedule]:
    axes = tuple(draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=4, unique=True)))
    sizes = {axis: draw(st.integers(1, 24)) for axis in axes}
    looped = draw(st.lists(st.sampled_from(axes), unique=True, max_size=2))
    loops: tuple[Loop, ...] = ()
    for axis in looped:
        loops = (Loop(axis, loops),)
    inputs = [
        draw(tensors(f"t{index}", draw(subsets(axes)), sizes, plain=False)) for index in range(draw(st.integers(1, 3)))
    ]
    ops = Ops(tuple(inputs))
    values = [ops.load(f"L{tensor.name}", tensor.name) for tensor in inputs]
    pointwise(draw, ops, values, "v")
    reduced_inside(draw, ops, values)
    finished = [
        _finish(ops, value, loops, draw(st.booleans()), draw(st.sampled_from(("", LARGEST))))
        for value in draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
    ]
    pointwise(draw, ops, finished, "w")
    result = finished[-1]
    left = tuple(sorted(ops.axes(result)))
    output = draw(tensors("out", left, sizes, plain=True))
    ops.tensors["out"] = output
    ops.store("stored", result, "out")
    block = BlockGraph(name, sizes, (*inputs, output), tuple(ops.ops), loops)
    reduced = {axis for op in ops.ops for axis in op.over}
    grid = draw(subsets(tuple(axis for axis in left if axis not in reduced and axis not in looped) or ("",)))
    tile = st.sampled_from((1, 2, 4, 16))
    schedule = Schedule(
        tuple((axis, draw(tile)) for axis in grid if axis),
        {axis: draw(tile) for axis in looped},
        draw(st.booleans()),
        draw(st.sampled_from((1, 2, 8))),
        draw(st.integers(1, 5)),
        evict=draw(st.sampled_from((None, True, False))),
    )
    # A dot takes one element of each batch axis at a time, which only a tile or a loop makes of it.
    assume(not any("batch axis" in said for said in schedule_violations(block, schedule, None, True)))
    return block, schedule


def _finish(ops: Ops, value: str, loops: tuple[Loop, ...], sum_first: bool, fn: str) -> str:
    """The value after all loops it varies in: summed over their axes in the loop or behind it, and accumulated (with
    fn: the largest along them)."""
    graph = BlockGraph("", {}, tuple(ops.tensors.values()), tuple(ops.ops), loops)
    paths = loop_paths(loops)
    for axis in sorted(varying(graph)[value], key=lambda axis: -len(paths[axis])):
        steps = ("sum", "accum") if sum_first else ("accum", "sum")
        for step in steps:
            name = f"{value}_{step}{len(ops.ops)}"
            if step == "accum":
                value = ops.accum(name, value, axis, fn)
            elif axis in ops.axes(value):
                value = ops.reduce(name, Kind.AMAX if fn else Kind.SUM, value, over=axis)
    return value


@st.composite
def mugraphs(draw: st.DrawFn) -> MuGraph:
    """One generated kernel, perhaps with a thread graph, perhaps with library kernels before and after."""
    block, schedule = draw(block_graphs())
    (output,) = block.outputs
    fusible = [op for op in block.ops if op.kind in (*BINARY, Kind.SQRT, Kind.EXP, Kind.UNARY)]
    threads: tuple[ThreadGraph, ...] = ()
    if fusible and draw(st.booleans()):
        op = draw(st.sampled_from(fusible))
        constants = {other.name for other in block.ops if other.kind is Kind.CONST}
        reads = tuple(dict.fromkeys(name for name in op.inputs if name not in constants))
        threads = (ThreadGraph(op.name, reads, (op,)),)
    kernel = GraphKernel(draw(st.sampled_from(("kernel", "other"))), block, schedule, threads)
    sizes, known = block.sizes, block.tensors
    if draw(st.booleans()):
        # The kernel graph may name axes differently: one flat axis per dimension.
        known = tuple(
            Tensor(t.name, tuple((f"{t.name}_{i}",) for i, _ in enumerate(t.dims)), t.strides, t.dtype, t.source)
            for t in block.tensors
        )
        sizes = {
            f"{t.name}_{i}": prod(block.sizes[axis] for axis in dim)
            for t in block.tensors
            for i, dim in enumerate(t.dims)
        }
    inputs = tuple(tensor.name for tensor in block.inputs)
    kernels: list[GraphKernel | LibraryKernel] = [kernel]
    outputs = (output.name,)
    if draw(st.booleans()):
        copy = Tensor("copied", (), (), "f32")
        known = (*known, copy)
        kernels.append(LibraryKernel("copy", 'torch.copy("é", {out=1})', outputs, ("copied",)))
        outputs = (*outputs, "copied")
    return MuGraph("Layer.forward", sizes, known, inputs, outputs, tuple(kernels))


@st.composite
def programs(draw: st.DrawFn) -> TensorProgram:
    axes = tuple(draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=4, unique=True)))
    sizes = {axis: draw(st.integers(1, 4096)) for axis in axes}
    inputs = [
        draw(tensors(f"t{index}", draw(subsets(axes)), sizes, plain=False)) for index in range(draw(st.integers(1, 3)))
    ]
    ops = Ops(tuple(inputs))
    values = [ops.load(f"L{tensor.name}", tensor.name) for tensor in inputs]
    pointwise(draw, ops, values, "v")
    one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    if shared := sorted(ops.axes(one) & ops.axes(other)):
        values.append(ops.reduce("product", Kind.DOT, one, other, over=draw(st.sampled_from(shared))))
        pointwise(draw, ops, values, "w")
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
    outputs = {
        value: draw(tensors(f"y{index}", tuple(sorted(ops.axes(value))), sizes, plain=True))
        for index, value in enumerate(chosen)
    }
    return TensorProgram("random_program", sizes, tuple(inputs), tuple(ops.ops), outputs)

"""Each rule of the spec checker, with a graph that violates it and nothing else."""

from dataclasses import replace
from typing import TypeVar

import pytest
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import (
    SpecError,
    check_block,
    check_candidate,
    check_mugraph,
    check_program,
    ensure_block,
    ensure_candidate,
    ensure_mugraph,
    ensure_program,
)
from mugraph.ir.spec.schedule import least_shared_memory
from mugraph.ir.tensors import Tensor
from mugraph.targets import TARGETS

from tests.engine.ir.graphs import (
    GRAPHS,
    PROGRAMS,
    Ops,
    attention,
    gated_mlp,
    gemm_chain,
    norm_and_cat,
    norm_and_matmul,
    rmsnorm_matmul,
    rmsnorm_matmul_program,
    split_attention,
    tensor,
    two_kernels,
)

G = TypeVar("G", BlockGraph, TensorProgram)


def kernel_of(graph: MuGraph, index: int = 0) -> GraphKernel:
    kernel = graph.kernels[index]
    assert isinstance(kernel, GraphKernel)
    return kernel


def with_op(graph: G, name: str, /, **changes: object) -> G:
    return replace(graph, ops=tuple(replace(op, **changes) if op.name == name else op for op in graph.ops))


def rmsnorm_block() -> BlockGraph:
    return kernel_of(rmsnorm_matmul()).block


@pytest.mark.parametrize("name", GRAPHS)
def test_the_papers_graphs_are_valid(name: str) -> None:
    assert check_mugraph(GRAPHS[name](), TARGETS["h100"]) == []
    ensure_mugraph(GRAPHS[name]())


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_papers_programs_are_valid(name: str) -> None:
    assert check_program(PROGRAMS[name]()) == []
    ensure_program(PROGRAMS[name]())


@pytest.mark.parametrize(
    ("name", "changes", "violation"),
    [
        ("mean", {"name": "rms"}, "there are two values rms"),
        ("z", {"name": "for"}, "value name 'for' is no Python identifier"),
        ("mean", {"inputs": ("rms", "count")}, "mean uses rms, which is not defined before it"),
        ("mean", {"inputs": ("squares",)}, "mean: div takes 2 values, not 1"),
        ("xg", {"axes": ("b",)}, "xg: mul of ['b', 'h'] and ['h'] has axes ['b', 'h'], not ['b']"),
        ("xg", {"axes": ("h", "b")}, "xg: mul of ['b', 'h'] and ['h'] has axes ['b', 'h'], not ['h', 'b']"),
        ("X", {"axes": ("b",)}, "X: load of nothing has axes ['b', 'h'], not ['b']"),
        ("X", {"tensor": "nothing"}, "X: there is no tensor nothing"),
        ("xgw", {"axes": ("b", "h", "n")}, "xgw: dot of ['b', 'h'] and ['h', 'n'] has axes ['b', 'n']"),
        ("xgw", {"over": ("b",), "axes": ("h", "n")}, "xgw: dot over b, which an operand does not have"),
        ("ss", {"over": ()}, "ss: sum needs `over`"),
        ("xg", {"over": ("h",)}, "xg: mul has no `over`"),
        ("xg", {"fn": "silu"}, "xg: mul has no `fn`"),
        ("xg", {"value": 2.0}, "xg: mul has no `value`"),
        ("xg", {"kind": Kind.UNARY, "inputs": ("X",)}, "xg: unary needs `fn`"),
        ("squares", {"axes": ()}, "squares: accum of ['b'] has axes ['b'], not []"),
        ("squares", {"over": ("n",)}, "squares accumulates over n, which is no loop"),
        ("squares", {"over": ("h", "n")}, "squares: an accumulator closes exactly one loop, not 2"),
        (
            "squares",
            {"inputs": ("product",), "axes": ("b", "n")},
            "squares accumulates over loop h, in which its input",
        ),
        ("mean", {"inputs": ("ss", "count")}, "z varies in loop h and uses a value accumulated over it"),
        ("out", {"inputs": ("xgw",)}, "out: the stored value varies in loop h; an accumulator is missing on the way"),
        ("out", {"inputs": ("rms",), "axes": ("b",)}, "out: the value has axes ['b'], tensor y ['b', 'n']"),
        ("out", {"tensor": "x"}, "tensor x is both loaded and stored"),
        ("W", {"kind": Kind.CONST, "axes": (), "tensor": ""}, "tensor w is neither loaded nor stored"),
    ],
)
def test_operators_of_a_block_graph(name: str, changes: dict[str, object], violation: str) -> None:
    violations = check_block(with_op(rmsnorm_block(), name, **changes))
    assert any(found.startswith(violation) for found in violations), violations
    with pytest.raises(SpecError, match="rmsnorm_matmul: "):
        ensure_block(with_op(rmsnorm_block(), name, **changes))


def test_a_stored_value_is_no_value_any_more() -> None:
    block = rmsnorm_block()
    late = Op("late", Kind.EXP, ("out",), ("b", "n"))
    assert check_block(replace(block, ops=(*block.ops, late))) == [
        "late uses out, which was stored and is no value any more"
    ]


def test_a_tensor_is_stored_once() -> None:
    block = rmsnorm_block()
    again = Op("again", Kind.STORE, ("z",), ("b", "n"), tensor="y")
    assert check_block(replace(block, ops=(*block.ops, again))) == ["tensor y is stored more than once"]


def test_there_is_an_output() -> None:
    block = rmsnorm_block()
    nothing = replace(block, ops=block.ops[:-1], tensors=block.tensors[:-1])
    assert check_block(nothing) == ["there is no output"]


def test_loop_invariant_values_may_be_used_after_the_loop() -> None:
    """The hoist: attention's scale and LoRA's second matrix; here a bias loaded whole and added at the end."""
    block = rmsnorm_block()
    bias = tensor("bias", (("n",),), block.sizes)
    load, plus = Op("B", Kind.LOAD, axes=("n",), tensor="bias"), Op("zb", Kind.ADD, ("z", "B"), ("b", "n"))
    store = replace(block.ops[-1], inputs=("zb",))
    hoisted = replace(block, ops=(load, *block.ops[:-1], plus, store), tensors=(bias, *block.tensors))
    assert check_block(hoisted) == []


def two_passes() -> BlockGraph:
    """A looped norm: the sum of squares in a first pass over h, the division in a second."""
    sizes = {"b": 8, "h": 4096}
    x, y = tensor("x", (("b",), ("h",)), sizes), tensor("y", (("b",), ("h",)), sizes)
    ops = Ops((x, y))
    ops.load("X", "x"), ops.op("xx", Kind.MUL, "X", "X"), ops.reduce("ss", Kind.SUM, "xx", over="h")
    ops.accum("squares", "ss", "h"), ops.op("rms", Kind.SQRT, "squares"), ops.op("z", Kind.DIV, "X", "rms")
    ops.store("out", "z", "y")
    return BlockGraph("norm", sizes, (x, y), tuple(ops.ops), (Loop("h"),))


def test_a_second_pass_is_not_in_mirages_definition() -> None:
    assert check_block(two_passes()) == [
        "z varies in loop h and uses a value accumulated over it, which needs 2 passes over the loop"
    ]
    assert check_block(two_passes(), passes=2) == []
    assert check_candidate(two_passes(), Schedule((("b", 1),), {"h": 1024}), passes=2) == []


def test_one_tile_does_not_fill_a_tensor() -> None:
    """An accumulator that keeps its loop's axis holds one tile; the whole axis cannot be stored from it."""
    block = two_passes()
    ops = Ops(block.tensors)
    ops.load("X", "x"), ops.accum("kept", "X", "h"), ops.store("out", "kept", "y")
    assert check_block(replace(block, ops=tuple(ops.ops))) == [
        "out: the stored value has one tile of axis h, tensor y all of it"
    ]


def test_loops_occur_once_and_have_sizes() -> None:
    block = rmsnorm_block()
    assert "loop h occurs more than once" in check_block(replace(block, loops=(Loop("h"), Loop("h"))))
    assert "loop axis t has no size" in check_block(replace(block, loops=(Loop("h", (Loop("t"),)),)))


def test_an_outer_loop_closes_after_the_loops_inside_it() -> None:
    block = kernel_of(gemm_chain()).block
    wrong = replace(block, loops=(Loop("k", (Loop("n"),)),))
    assert "c closes loop k while its input still varies in n, a loop inside it" in check_block(wrong)


def test_values_do_not_vary_in_two_sibling_loops() -> None:
    block = kernel_of(gemm_chain()).block
    wrong = replace(block, loops=(Loop("k"), Loop("n")))
    assert "ab varies in loops k and n, neither of which is inside the other" in check_block(wrong)


@pytest.mark.parametrize(
    ("changes", "violation"),
    [
        ({"name": "w"}, "there are two tensors w"),
        ({"name": "not a name"}, "tensor name 'not a name' is no Python identifier"),
        ({"dtype": "f64"}, "tensor x has element type f64"),
        ({"strides": (1,)}, "tensor x has 2 dimensions and 1 strides"),
        ({"dims": (("b",), ("b",))}, "tensor x has an axis twice: ['b', 'b']"),
        ({"dims": (("b",), ("t",))}, "axis t of tensor x has no size"),
    ],
)
def test_tensors(changes: dict[str, object], violation: str) -> None:
    block = rmsnorm_block()
    broken = replace(block, tensors=(replace(block.tensors[0], **changes), *block.tensors[1:]))
    assert violation in check_block(broken)


def test_sizes_are_positive() -> None:
    assert "axis b has size 0" in check_block(replace(rmsnorm_block(), sizes={"b": 0, "h": 1024, "n": 4096}))


@pytest.mark.parametrize(
    ("strides", "overlaps"), [((4096, 1), False), ((1, 16), False), ((0, 1), True), ((1, 1), True)]
)
def test_output_elements_do_not_overlap(strides: tuple[int, int], overlaps: bool) -> None:
    block = rmsnorm_block()
    output = replace(block.tensors[-1], strides=strides)
    found = check_block(replace(block, tensors=(*block.tensors[:-1], output)))
    expected = f"out: elements of tensor y overlap in memory (strides {list(strides)})"
    assert found == ([expected] if overlaps else [])


@pytest.mark.parametrize(
    ("schedule", "violation"),
    [
        (Schedule((("n", 48),), {"h": 256}), "the tile of axis n is 48, no power of two"),
        (Schedule((("n", 64),), {"h": 0}), "the tile of axis h is 0, no power of two"),
        (Schedule((("n", 64), ("n", 64)), {"h": 256}), "grid axis n occurs more than once"),
        (Schedule((("t", 64),), {"h": 256}), "grid axis t has no size"),
        (Schedule((("h", 64),), {"h": 64}), "axis h is both on the grid and looped"),
        (
            Schedule((("h", 64),), {"h": 64}),
            "grid axis h is missing from output y: blocks would write the same elements",
        ),
        (Schedule((("h", 64),), {"h": 64}), "ss reduces grid axis h, of which a block has one tile only"),
        (Schedule((("n", 64),)), "loop h has no tile"),
        (Schedule((("n", 64),), {"h": 256, "n": 4}), "there is a tile for n, which is no loop"),
        (Schedule((("n", 64),), {"h": 256}, num_warps=3), "num_warps is 3, no power of two up to 32"),
        (Schedule((("n", 64),), {"h": 256}, num_warps=64), "num_warps is 64, no power of two up to 32"),
        (Schedule((("n", 64),), {"h": 256}, num_stages=0), "num_stages is 0"),
        (Schedule((), {"h": 1024}), "W: a tile of 4194304 elements is over the limit of 1048576"),
    ],
)
def test_schedules(schedule: Schedule, violation: str) -> None:
    assert violation in check_candidate(rmsnorm_block(), schedule)
    with pytest.raises(SpecError, match="rmsnorm_matmul"):
        ensure_candidate(rmsnorm_block(), schedule)


def test_padding_counts_in_a_tile() -> None:
    """A whole axis of 1,000 is 1,024 lanes."""
    sizes = {"a": 1000, "b": 1025}
    x, y = tensor("x", (("a",), ("b",)), sizes), tensor("y", (("a",), ("b",)), sizes)
    ops = Ops((x, y))
    ops.load("X", "x"), ops.store("out", "X", "y")
    block = BlockGraph("copy", sizes, (x, y), tuple(ops.ops))
    assert check_candidate(block, Schedule(())) == ["X: a tile of 2097152 elements is over the limit of 1048576"]


def test_shared_memory() -> None:
    """Three stages keep two tiles of 256 × 64 halves of w; x goes through the multiplication, not into the dot."""
    block = rmsnorm_block()
    small = Schedule((("n", 64), ("b", 16)), {"h": 256})
    assert least_shared_memory(block, small) == 2 * 256 * 64 * 2
    large = Schedule((("n", 128), ("b", 16)), {"h": 512}, num_stages=3)
    (violation,) = check_candidate(block, large, TARGETS["h100"])
    assert violation == "at least 262144 bytes of shared memory are needed; a block on h100 has 232448"
    assert check_candidate(block, large) == []


def test_a_batch_axis_of_a_dot_has_a_tile_of_one() -> None:
    kernel = kernel_of(attention())
    wrong = Schedule((("q", 64), ("h", 2)), {"k": 64})
    assert "qk: batch axis h has a tile of 2; a dot takes 1" in check_candidate(kernel.block, wrong)


def test_wide_axes_of_a_side_are_packed() -> None:
    sizes = {"b": 4, "s": 16, "k": 64, "n": 64}
    x, w = tensor("x", (("b",), ("s",), ("k",)), sizes), tensor("w", (("k",), ("n",)), sizes)
    y = tensor("y", (("b",), ("s",), ("n",)), sizes)
    ops = Ops((x, w, y))
    ops.load("X", "x"), ops.load("W", "w"), ops.reduce("z", Kind.DOT, "X", "W", over="k"), ops.store("out", "z", "y")
    block = BlockGraph("project", sizes, (x, w, y), tuple(ops.ops))
    assert check_candidate(block, Schedule((("b", 1),))) == []
    assert check_candidate(block, Schedule(())) == []
    # With one element of n a block it is a matrix-vector product, which no tensor core computes.
    assert check_candidate(block, Schedule((("n", 1),))) == []


def _written_twice(graph: MuGraph) -> MuGraph:
    second = kernel_of(graph)
    return replace(graph, kernels=(second, replace(second, name="again")))


def _out_of_order(graph: MuGraph) -> MuGraph:
    return replace(graph, kernels=graph.kernels[::-1])


def _other_shape(graph: MuGraph) -> MuGraph:
    kernel = kernel_of(graph)
    sizes = {**kernel.block.sizes, "h": 512}
    return replace(graph, kernels=(replace(kernel, block=replace(kernel.block, sizes=sizes)),))


def _unknown(graph: MuGraph) -> MuGraph:
    return replace(graph, tensors=graph.tensors[1:], inputs=graph.inputs[1:])


@pytest.mark.parametrize(
    ("graph", "violation"),
    [
        (_written_twice(gated_mlp()), "kernel again writes y, which is an input or already written"),
        (replace(norm_and_cat(), kernels=norm_and_cat().kernels * 2), "there are two kernels cat"),
        (_out_of_order(split_attention()), "kernel combine reads parts before anything has written it"),
        (_out_of_order(norm_and_cat()), "kernel sort reads scaled before anything has written it"),
        (replace(gated_mlp(), kernels=()), "nothing writes output y"),
        (replace(gated_mlp(), outputs=("z",)), "there is no tensor z"),
        (_unknown(gated_mlp()), "kernel gated_mlp: there is no tensor x in the kernel graph"),
        (
            _other_shape(gated_mlp()),
            "kernel gated_mlp takes x to be f16[8, 512] with strides [4096, 1]; "
            "it is f16[8, 4096] with strides [4096, 1]",
        ),
    ],
)
def test_kernel_graphs(graph: MuGraph, violation: str) -> None:
    assert violation in check_mugraph(graph)
    with pytest.raises(SpecError):
        ensure_mugraph(graph)


def test_violations_inside_a_kernel_name_it() -> None:
    graph = gated_mlp()
    kernel = kernel_of(graph)
    broken = replace(graph, kernels=(replace(kernel, schedule=replace(kernel.schedule, num_stages=0)),))
    assert check_mugraph(broken) == ["kernel gated_mlp: num_stages is 0"]


def test_one_memory_under_two_names() -> None:
    """A kernel may read under other axis names what another has written: same source, same memory."""
    graph = norm_and_cat()
    joined = graph.tensors[2]
    assert joined.name == "joined"
    both = (replace(joined, source="y"), replace(joined, name="view", source="y"))
    kernel = kernel_of(graph, 1)
    block = with_op(replace(kernel.block, tensors=(both[1], kernel.block.tensors[1])), "J", tensor="view")
    kernels = (graph.kernels[0], replace(kernel, block=block), graph.kernels[2])
    tensors = (*graph.tensors[:2], *both, *graph.tensors[3:])
    assert check_mugraph(replace(graph, tensors=tensors, kernels=kernels)) == []
    apart = (*graph.tensors[:2], both[0], replace(both[1], source="z"), *graph.tensors[3:])
    assert check_mugraph(replace(graph, tensors=apart, kernels=kernels)) == [
        "kernel scale reads view before anything has written it"
    ]


def test_programs_load_each_input_once_and_write_contiguously() -> None:
    program = rmsnorm_matmul_program()
    assert check_program(replace(program, outputs={})) == ["there is no output"]
    assert check_program(replace(program, outputs={"zz": program.outputs["z"]})) == ["output zz is no value"]
    column_major = replace(program.outputs["z"], strides=(1, 16))
    assert check_program(replace(program, outputs={"z": column_major})) == ["output tensor y is not contiguous"]
    narrow = Tensor("y", (("b",),), (1,), "f16")
    assert check_program(replace(program, outputs={"z": narrow})) == ["output z has axes ['b', 'n'], its tensor ['b']"]
    second = Op("X2", Kind.LOAD, axes=("b", "h"), tensor="x")
    assert check_program(replace(program, ops=(second, *program.ops))) == ["tensor x is loaded 2 times, not once"]
    stray = Tensor("stray", (("b",),), (1,), "f16")
    assert check_program(replace(program, tensors=(*program.tensors, stray))) == [
        "tensor stray is loaded 0 times, not once"
    ]


@pytest.mark.parametrize("kind", [Kind.ACCUM, Kind.STORE])
def test_programs_have_no_accumulators_and_stores(kind: Kind) -> None:
    program = with_op(rmsnorm_matmul_program(), "rms", kind=kind)
    assert f"rms: {kind} does not occur in a tensor program" in check_program(program)
    with pytest.raises(SpecError) as error:
        ensure_program(program)
    assert error.value.violations == check_program(program)


def test_what_a_library_kernel_computes_must_fit_it() -> None:
    graph = norm_and_matmul()
    norm, product = graph.kernels
    assert isinstance(product, LibraryKernel)
    assert product.block is not None

    def violations(kernel: GraphKernel | LibraryKernel) -> list[str]:
        return check_mugraph(replace(graph, kernels=(norm, kernel)))

    assert violations(product) == []
    assert violations(replace(product, inputs=("w",))) == [
        "library kernel mm computes ['y'] from ['normed', 'w'], not ['y'] from ['w']"
    ]
    assert violations(replace(product, call="torch.mm(normed, normed)")) == [
        "library kernel mm computes torch.mm(normed, w), not torch.mm(normed, normed)"
    ]
    wide = replace(product.block, sizes={**product.block.sizes, "h": 2048})
    assert any("takes normed to be" in one for one in violations(replace(product, block=wide)))
    ops = tuple(replace(op, axes=("b",)) if op.kind is Kind.DOT else op for op in product.block.ops)
    odd = replace(product, block=replace(product.block, ops=ops))
    assert any(one.startswith("kernel mm: zw") for one in violations(odd))
    assert violations(GraphKernel("mm", product.block, Schedule((), library=True))) == [
        "kernel mm is scheduled as a library kernel"
    ]
    norm_as_library = Schedule((), library=True)
    assert isinstance(norm, GraphKernel)
    assert check_candidate(norm.block, norm_as_library) == []
    times = tuple(replace(op, kind=Kind.MUL) if op.kind is Kind.DIV else op for op in norm.block.ops)
    assert check_candidate(replace(norm.block, ops=times), norm_as_library) == [
        "no library call computes it without a copy"
    ]


def test_a_loop_inside_another_one_waits_for_its_sums() -> None:
    """What varies in the inner loop alone stands in the outer one too, whose sums are not complete there."""
    sizes = {"m": 16, "n": 64, "k": 64}
    x, y, z = tensor("x", (("m",), ("n",)), sizes), tensor("y", (("m",), ("k",)), sizes), tensor("z", (("m",),), sizes)
    ops = Ops((x, y, z))
    ops.load("X", "x"), ops.load("Y", "y")
    ops.reduce("row", Kind.SUM, "X", over="n"), ops.accum("rows", "row", "n")
    ops.op("scaled", Kind.MUL, "Y", "rows"), ops.reduce("part", Kind.SUM, "scaled", over="k")
    ops.accum("total", "part", "k"), ops.store("out", "total", "z")
    apart = BlockGraph("apart", sizes, (x, y, z), tuple(ops.ops), (Loop("n"), Loop("k")))
    assert check_block(apart) == []
    nested = replace(apart, loops=(Loop("n", (Loop("k"),)),))
    assert check_block(nested) == [
        "scaled varies in k and so stands in loop n and uses a value accumulated over it, "
        "which needs 2 passes over the loop"
    ]
    assert check_block(nested, passes=2) == []
    assert check_block(replace(apart, loops=(Loop("k", (Loop("n"),)),))) == []


def test_launches_of_several_kernels() -> None:
    graph = two_kernels()
    first, second = graph.kernels
    assert check_mugraph(graph) == []
    assert check_mugraph(replace(graph, one_launch=((first.name,),))) == ["a launch of several kernels has 1"]
    twice = replace(graph, one_launch=(graph.one_launch[0], graph.one_launch[0]))
    assert f"kernel {first.name} is in two launches" in check_mugraph(twice)
    unknown = replace(graph, one_launch=((first.name, "another"),))
    assert check_mugraph(unknown) == ["another, of a launch of several kernels, is no generated kernel"]
    assert isinstance(second, GraphKernel)
    # One that reads what another one of the launch makes, by itself or through a call between them.
    ops = tuple(replace(op, tensor="y" if op.tensor == "w_2" else op.tensor) for op in second.block.ops)
    tensors = tuple(replace(one, name="y" if one.name == "w_2" else one.name) for one in second.block.tensors)
    reading = replace(second, block=replace(second.block, ops=ops, tensors=tensors))
    found = check_mugraph(replace(graph, kernels=(first, reading)))
    assert f"kernel {second.name} reads y, which {first.name} makes after its launch begins" in found
    call = LibraryKernel("mm", "torch.mm(y, w_3)", ("y",), ("w_2",))
    between = replace(graph, kernels=(first, call, second), inputs=("x", "g", "w"))
    assert f"kernel {second.name} reads w_2, which mm makes after its launch begins" in check_mugraph(between)

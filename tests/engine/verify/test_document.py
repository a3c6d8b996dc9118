"""Whole μGraphs of one and of several kernels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.commands.common import WrongUsage
from mugraph.commands.verify import read_graphs
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.json import mugraph_to_json
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.verify.document import verify_document

from tests.engine.verify.graphs import Builder, Case, lora, rms_norm_linear, tensor


def one_kernel(case: Case, schedule: Schedule) -> MuGraph:
    kernel = GraphKernel(case.block.name, case.block, schedule)
    return MuGraph(
        case.block.name,
        case.block.sizes,
        case.block.tensors,
        tuple(t.name for t in case.block.inputs),
        tuple(t.name for t in case.block.outputs),
        (kernel,),
    )


def two_kernels(forget: bool = False) -> MuGraph:
    """RMSNorm+Linear with the reduction over h split in two over the grid, and a second kernel that adds the parts."""
    case = rms_norm_linear()
    sizes = {"b": 16, "h": 1024, "n": 4096, "part": 4, "hp": 256}
    split = (("part", "hp"),)
    x = replace(case.program.tensor("x"), dims=(("b",), *split))
    g = replace(case.program.tensor("g"), dims=split)
    w = replace(case.program.tensor("w"), dims=(("n",), *split))
    acc, ss = tensor("acc", "part b n", sizes, "f32"), tensor("ss", "part b", sizes, "f32")
    b = Builder()
    b.load("xv", x), b.load("gv", g), b.load("wv", w)
    b.ew("xg", Kind.MUL, "xv", "gv"), b.reduce("d", Kind.DOT, "xg", "wv", over="hp"), b.accum("da", "d", "hp")
    b.ew("sq", Kind.MUL, "xv", "xv"), b.reduce("s", Kind.SUM, "sq", over="hp"), b.accum("sa", "s", "hp")
    b.store("da", acc), b.store("sa", ss)
    first = BlockGraph("parts", _only(sizes, "part b n hp"), (x, g, w, acc, ss), tuple(b.ops), (Loop("hp"),))

    z = case.program.outputs["out"]
    c = Builder()
    c.load("acc_v", acc), c.load("ss_v", ss)
    c.reduce("all", Kind.SUM, "acc_v", over="part"), c.reduce("ssum", Kind.SUM, "ss_v", over="part")
    c.const("inv_h", 1 / 1024), c.ew("mean", Kind.MUL, "ssum", "inv_h")
    c.const("eps", 1e-6), c.ew("shifted", Kind.ADD, "mean", "eps"), c.ew("rms", Kind.SQRT, "shifted")
    c.ew("out", Kind.DIV, "all", "shifted" if forget else "rms"), c.store("out", z)
    second = BlockGraph("combine", _only(sizes, "part b n"), (acc, ss, z), tuple(c.ops))
    kernels = (
        GraphKernel("parts", first, Schedule((("n", 64), ("part", 1), ("b", 16)), {"hp": 64})),
        GraphKernel("combine", second, Schedule((("n", 64), ("b", 16)))),
    )
    return MuGraph("split", sizes, (x, g, w, acc, ss, z), ("x", "g", "w"), ("z",), kernels)


def _only(sizes: dict[str, int], axes: str) -> dict[str, int]:
    return {axis: sizes[axis] for axis in axes.split()}


def test_one_kernel() -> None:
    case = lora()
    schedule = Schedule((("n", 64), ("m", 16)), {"k": 64})
    ops = tuple(replace(op, kind=Kind.MUL) if op.name == "both" else op for op in case.block.ops)
    wrong = replace(case, block=replace(case.block, ops=ops))
    right, bad = verify_document(case.program, [one_kernel(case, schedule), one_kernel(wrong, schedule)])
    assert right.passed, right.reason
    assert right.bound is not None
    assert not bad.passed


def test_a_split_reduction_over_two_kernels() -> None:
    program = rms_norm_linear().program
    right, wrong = verify_document(program, [two_kernels(), two_kernels(forget=True)])
    assert right.passed, right.reason
    assert right.bound is None
    assert right.sizes[0]["h"] == right.sizes[0]["part"] * right.sizes[0]["hp"]
    assert not wrong.passed
    assert "differs" in (wrong.reason or "")


def test_names_may_differ_from_the_program() -> None:
    case = lora()
    graph = one_kernel(case, Schedule((("n", 64),), {"k": 64}))
    renamed = replace(
        case.program,
        tensors=tuple(replace(t, name=f"arg_{t.name}") for t in case.program.tensors),
        ops=tuple(replace(o, tensor=f"arg_{o.tensor}") if o.tensor else o for o in case.program.ops),
    )
    (verdict,) = verify_document(renamed, [graph])
    assert verdict.passed, verdict.reason
    (swapped,) = verify_document(renamed, [replace(graph, inputs=graph.inputs[::-1])])
    assert not swapped.passed
    assert "shape" in (swapped.reason or "")


def test_library_kernels_are_not_taken_on_trust() -> None:
    case = lora()
    graph = one_kernel(case, Schedule((("n", 64),), {"k": 64}))
    library = LibraryKernel("mm", "torch.matmul(x, w)", ("x", "w"), ("o",))
    (verdict,) = verify_document(case.program, [replace(graph, kernels=(library,))])
    assert not verdict.passed
    assert "library" in (verdict.reason or "")


@pytest.mark.parametrize("depth", [200, 400, 900, 3000, 100_000])
def test_a_nest_of_any_depth_is_one_sentence(depth: int, tmp_path: Path) -> None:
    """Read and refused, or not read: never a traceback."""
    case = lora()
    graph = mugraph_to_json(one_kernel(case, Schedule((("n", 64),), {"k": 64})))
    text = json.dumps(graph)
    loops = '{"axis": "k", "body": [' * depth + "]}" * depth
    text = text.replace('"loops": [{"axis": "k", "body": []}]', f'"loops": [{loops}]')
    assert len(text) > 20 * depth
    path = tmp_path / "graph.json"
    path.write_text(text)
    said = ""
    try:
        (read,) = read_graphs(path)
        (verdict,) = verify_document(case.program, [read])
        assert not verdict.passed
        said = verdict.reason or ""
    except WrongUsage as error:
        said = str(error)
    assert said
    assert "\n" not in said

"""Axes are what they run over, whatever they are called; called as in the program they may be others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.renaming import Names, Renaming
from mugraph.verification.axis_names import groups, with_program_axes
from mugraph.verification.document import verify_document
from mugraph.verification.relations import Relations
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.documents import one_kernel, two_kernels
from tests.engine.verification.full_size_schedules import SCHEDULES
from tests.engine.verification.graphs import CASES, Builder, Case, gated_mlp, rms_norm_linear, tensor


def renamed(graph: MuGraph, names: Mapping[str, str], *, outer: bool) -> MuGraph:
    """Its kernels with other names of axes; the kernel graph too, or with its own."""
    words = Renaming(Names(axes=tuple(names)), Names(axes=tuple(names.values())), made=False)
    kernels: list[GraphKernel] = []
    for kernel in graph.kernels:
        assert isinstance(kernel, GraphKernel)
        kernels.append(replace(kernel, block=words.block(kernel.block), schedule=words.schedule(kernel.schedule)))
    if not outer:
        return replace(graph, kernels=tuple(kernels))
    sizes = {names.get(axis, axis): size for axis, size in graph.sizes.items()}
    tensors = tuple(
        replace(t, dims=tuple(tuple(names.get(a, a) for a in dim) for dim in t.dims)) for t in graph.tensors
    )
    return replace(graph, sizes=sizes, tensors=tensors, kernels=tuple(kernels))


def other_names(axes: list[str], data: st.DataObject) -> dict[str, str]:
    """One another's, new ones, or both."""
    names = data.draw(st.permutations([*axes, "one", "other", "third"]))
    return dict(zip(axes, names, strict=False))


@settings(max_examples=24, deadline=None)
@given(st.data())
def test_any_names_will_do(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CASES)))
    case = CASES[name]()
    graph = one_kernel(case, SCHEDULES[name])
    names = other_names(list(case.block.sizes), data)
    (verdict,) = verify_document(case.program, [renamed(graph, names, outer=data.draw(st.booleans()))], seed=1)
    assert verdict.passed, f"{name} with {names}: {verdict.reason}"


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_each_kernel_may_have_its_own_names(data: st.DataObject) -> None:
    program, graph = rms_norm_linear().program, two_kernels()
    kernels: list[GraphKernel] = []
    for kernel in graph.kernels:
        assert isinstance(kernel, GraphKernel)
        alone = replace(graph, kernels=(kernel,))
        (moved,) = renamed(alone, other_names(list(kernel.block.sizes), data), outer=False).kernels
        assert isinstance(moved, GraphKernel)
        kernels.append(moved)
    (verdict,) = verify_document(program, [replace(graph, kernels=tuple(kernels))], seed=1)
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize("name", ["w", "v"])
def test_the_names_of_one_tensor_exchanged_are_another_function(name: str) -> None:
    """x w and x w^T of a square w; and the same where everything has other names."""
    case = gated_mlp()
    tensors = tuple(replace(t, dims=t.dims[::-1]) if t.name == name else t for t in case.block.tensors)
    wrong = one_kernel(Case(case.program, replace(case.block, tensors=tensors)), SCHEDULES["gated_mlp"])
    names = {"m": "k", "k": "n", "n": "m"}
    for graph in (wrong, renamed(wrong, names, outer=True)):
        (verdict,) = verify_document(case.program, [graph], seed=1)
        assert "differs" in (verdict.reason or "")


def split(parts: Mapping[str, int]) -> tuple[TensorProgram, BlockGraph]:
    """exp(x) + x, in the program with rows of 16 heads by 64, in the block graph cut otherwise."""
    sizes = {"b": 8, "h": 16, "d": 64}
    dims = (("b",), ("h", "d"))
    x, z = Tensor("x", dims, (1024, 1), "f16", "x"), Tensor("z", dims, (1024, 1), "f16", "z")
    p, b = Builder(), Builder()
    p.load("xv", x), p.ew("e", Kind.EXP, "xv"), p.ew("out", Kind.ADD, "e", "xv")
    program = TensorProgram("split", sizes, (x,), tuple(p.ops), {"out": z})
    x, z = (replace(t, dims=(("b",), tuple(parts))) for t in (x, z))
    b.load("xv", x), b.ew("e", Kind.EXP, "xv"), b.ew("out", Kind.ADD, "e", "xv"), b.store("out", z)
    return program, BlockGraph("split", {"b": 8, **parts}, (x, z), tuple(b.ops))


CUTS = [{"h": 16, "d": 64}, {"i": 16, "j": 64}, {"hd": 1024}, {"h": 8, "d": 128}, {"i": 32, "j": 8, "k": 4}]


@pytest.mark.parametrize("parts", CUTS)
def test_a_dimension_in_other_parts(parts: dict[str, int]) -> None:
    program, block = split(parts)
    graph = one_kernel(Case(program, block), Schedule((("b", 2), *((axis, 4) for axis in parts))))
    (verdict,) = verify_document(program, [graph], seed=1)
    assert verdict.passed, verdict.reason


def test_parts_that_have_none_in_common() -> None:
    program, block = split({"i": 24, "j": 16})
    graph = one_kernel(Case(program, block), Schedule((("b", 2),)))
    assert not verify_document(program, [graph], seed=1)[0].passed


def test_groups_are_the_shortest() -> None:
    sizes = {"a": 4, "b": 6, "c": 5, "one": 1}
    other = {"x": 2, "y": 2, "z": 30}
    assert groups(("a", "b", "one", "c"), sizes, ("x", "y", "z"), other) == [(("a",), ("x", "y")), (("b", "c"), ("z",))]
    assert groups(("a", "b"), sizes, ("z",), other) == []


def test_two_cuts_of_one_dimension_have_parts_of_both() -> None:
    program, block = split({"i": 8, "j": 128})
    ((renamed_block, _),) = with_program_axes(program, [(block, Schedule(()))])
    relations = Relations(program, [renamed_block])
    assert {relations.sizes[part] for parts in relations.products.values() for part in parts} >= {2, 8}
    assert verify_topology(program, renamed_block, seed=1).passed


def test_a_name_of_the_program_for_an_axis_inside() -> None:
    """A kernel's parts of k are called as the program's axes, of other sizes."""
    sizes = {"m": 8, "n": 16, "k": 64}
    x, w, z = tensor("x", "m k", sizes), tensor("w", "k n", sizes), tensor("z", "m n", sizes)
    p, b = Builder(), Builder()
    p.load("xv", x), p.load("wv", w), p.reduce("out", Kind.DOT, "xv", "wv", over="k")
    program = TensorProgram("product", sizes, (x, w), tuple(p.ops), {"out": z})
    own = {"a": 8, "k": 16, "n": 4, "m": 16}
    xs, ws = replace(x, dims=(("a",), ("n", "m"))), replace(w, dims=(("n", "m"), ("k",)))
    zs = replace(z, dims=(("a",), ("k",)))
    b.load("xv", xs), b.load("wv", ws), b.reduce("row", Kind.DOT, "xv", "wv", over="m"), b.accum("t", "row", "n")
    b.ops[-2:] = [
        replace(op, axes=("a", "k"), over=("m", "n") if op.kind is Kind.DOT else op.over) for op in b.ops[-2:]
    ]
    b.ops.append(Op("store", Kind.STORE, ("t",), ("a", "k"), tensor="z"))
    block = BlockGraph("product", own, (xs, ws, zs), tuple(b.ops), (Loop("n"),))
    graph = one_kernel(Case(program, block), Schedule((("a", 4),), {"n": 1}))
    (verdict,) = verify_document(program, [graph], seed=1)
    assert verdict.passed, verdict.reason

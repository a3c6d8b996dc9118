"""One kernel with several outputs, and kernel graphs of programs that have several: found, right, and lowered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_candidate
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search import Limits
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.partitions import Part, Partitions
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topologies, verify_topology

from tests.engine.search.workloads import Builder
from tests.engine.verification.mutants import mutants

H100 = TARGETS["h100"]
LITTLE = Limits(seconds=0.5, max_topologies=12)


def with_outputs(b: Builder, **outputs: tuple[str, ...]) -> TensorProgram:
    """outputs: value -> axes of the tensor it is stored to, in memory order"""
    stored: dict[str, Tensor] = {}
    for value, axes in outputs.items():
        dims = tuple((axis,) for axis in axes)
        stored[value] = Tensor(f"{value}_out", dims, contiguous_strides(dims, b.sizes), "f16", value)
    return replace(b.program(next(iter(outputs)), *next(iter(outputs.values()))), outputs=stored)


def residual(m: int = 16, h: int = 64, n: int = 32) -> TensorProgram:
    """A sum, and the product of its norm."""
    b = Builder("residual", m=m, h=h, n=n)
    total = b.add("total", b.input("x", "m", "h"), b.input("y", "m", "h"))
    b.dot("projected", b.rms("norm", total, "h"), b.input("w", "h", "n"), "h")
    return with_outputs(b, total=("m", "h"), projected=("m", "n"))


def projections(m: int = 16, h: int = 64, n: int = 32) -> TensorProgram:
    """Three products of one norm."""
    b = Builder("projections", m=m, h=h, n=n)
    norm = b.rms("norm", b.input("x", "m", "h"), "h")
    for name in ("q", "k", "v"):
        b.dot(name, norm, b.input(f"w{name}", "h", "n"), "h")
    return with_outputs(b, q=("m", "n"), k=("m", "n"), v=("m", "n"))


def moments(m: int = 16, h: int = 64) -> TensorProgram:
    """Mean and mean square."""
    b = Builder("moments", m=m, h=h)
    x = b.input("x", "m", "h")
    share = b.const("share", 1 / h)
    b.mul("mean", b.sum("total", x, "h"), share)
    b.mul("square", b.sum("squares", b.mul("squared", x, x), "h"), share)
    return with_outputs(b, mean=("m",), square=("m",))


PROGRAMS = {"residual": residual, "projections": projections, "moments": moments}


def blocks_of(program: TensorProgram) -> list[BlockGraph]:
    return [found.block for found in SeveralSearch(program, LITTLE).run()]


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_computes_all_outputs(name: str, tester: FloatTester) -> None:
    """In a loop and without one: equal to the program, right in the interpreter, compiled for both architectures."""
    program = PROGRAMS[name]()
    blocks = blocks_of(program)
    forms = {block.loop_axes: block for block in reversed(blocks)}
    assert {(), ("h",)} <= forms.keys()
    for block in forms.values():
        assert {tensor.name for tensor in block.outputs} == {tensor.name for tensor in program.outputs.values()}
        assert sum(op.kind is Kind.LOAD and op.tensor == "x" for op in block.ops) == 1  # what is shared is read once
        verdict = verify_topology(program, block, seed=3)
        assert verdict.passed, verdict.reason
        candidate = kernel_candidates([block], H100)[0]
        assert check_candidate(candidate.block, candidate.schedule, H100) == []
        kernels = [(kernel.block, kernel.schedule) for kernel in candidate.kernels]
        source = lower_kernels(kernels, outputs=[tensor.name for tensor in program.outputs.values()])
        tested = tester.test_kernel(source, program)
        assert tested.passed, tested.reason
        if block.loops and os.environ.get("TRITON_INTERPRET") != "1":
            for part in source.kernels:
                for target in ("sm_80", "sm_90"):
                    device = TARGETS[target]
                    assert compile_for(part, device.capability).shared_bytes <= device.shared


def _depends(block: BlockGraph, store: str) -> set[str]:
    needed = {store}
    for op in reversed(block.ops):
        if op.name in needed:
            needed.update(op.inputs)
    return needed


def test_one_wrong_output_of_several_is_enough() -> None:
    """Whatever is changed in the part that one output alone depends on, and the outputs exchanged."""
    program = projections()
    block = min(blocks_of(program), key=lambda block: len(block.ops))
    stores = {op.name: op for op in block.ops if op.kind is Kind.STORE}
    first, second, _ = stores
    others = set[str]().union(*(_depends(block, name) for name in stores if name != first))
    own = _depends(block, first) - others
    rejected = 0
    for what, mutant in mutants(block):
        if what.split()[-1] in own:
            assert not verify_topology(program, mutant, seed=4).passed, what
            rejected += 1
    assert rejected >= 3
    exchanged = {first: stores[second].inputs, second: stores[first].inputs}
    ops = tuple(replace(op, inputs=exchanged.get(op.name, op.inputs)) for op in block.ops)
    assert not verify_topology(program, replace(block, ops=ops), seed=4).passed
    missing = replace(block, tensors=tuple(t for t in block.tensors if t.name != stores[first].tensor),
                      ops=tuple(op for op in block.ops if op.name != first))  # fmt: skip
    assert not verify_topology(program, missing, seed=4).passed


def test_what_the_outputs_cost_apart_is_known_first() -> None:
    program = projections(16, 256, 128)
    limits = GraphLimits(max_parts=2, partitions=4, each=Limits(seconds=0.3, max_topologies=3))
    found = [one.candidates[0] for one in KernelGraphs(program, H100, limits).run()]
    assert [len(kernel.block.outputs) for kernel in found[0].kernels] == [1, 1, 1]
    assert all(verify_topologies(program, _kernels(one), seed=5).passed for one in found)
    together = kernel_candidates(blocks_of(program), H100)[0]
    assert together.estimate_us < found[0].estimate_us


def _kernels(candidate: Candidate) -> list[tuple[BlockGraph, None]]:
    return [(kernel.block, None) for kernel in candidate.kernels]


def test_partitions_hold_groups_of_outputs() -> None:
    """A kernel of three outputs is one way among others, where a grid suits all of them."""
    program = projections()
    three = Part(("q", "k", "v"), frozenset())
    options = {three: 1.0, Part(("q", "k"), frozenset()): 2.0}

    def best(program: TensorProgram) -> list[Part]:
        found = Partitions(program, ["norm"]).best(lambda part: [(1, options.get(part, 5.0))], 3, 4, float("inf"))
        return [part for part, _ in found[0].parts]

    assert best(program) == [three]
    narrow = [replace(t, dims=(("h",), ("r",)), strides=(16, 1)) if t.name == "wv" else t for t in program.tensors]
    axes = {"wv": ("h", "r"), "v": ("m", "r")}
    ops = tuple(replace(op, axes=axes.get(op.name, op.axes)) for op in program.ops)
    third = replace(program.outputs["v"], dims=(("m",), ("r",)), strides=(16, 1))
    narrow_program = replace(
        program,
        sizes={**program.sizes, "r": 16},
        tensors=tuple(narrow),
        ops=ops,
        outputs={**program.outputs, "v": third},
    )
    assert {part.values for part in best(narrow_program)} == {("q", "k"), ("v",)}

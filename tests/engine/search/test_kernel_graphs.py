"""Kernel graphs: partitions against brute force, random programs against float64, what is found and what is solved."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.library import LibraryCall, library_call
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_candidate, check_program
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.transforms.renaming import key_of
from mugraph.search import Limits, Search
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs import partitions
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.merge import merged
from mugraph.search.kernel_graphs.partitions import Part, Partitions
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram, worth_storing
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.targets import TARGETS
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.execute import execute_kernels
from mugraph.verification.sizes import grid_axes
from mugraph.verification.verifier import verify_topologies

from tests.engine.search.random_programs import programs
from tests.engine.search.workloads import Builder, attention, gated_mlp, gemm_chain, rmsnorm_linear
from tests.support.tile_evaluator import evaluate_program, random_inputs, spread

H200 = TARGETS["h200"]
LITTLE = GraphLimits(max_parts=6, partitions=6, slack=50.0, variants=1, each=Limits(seconds=0.3, max_topologies=3))


def graphs_of(program: TensorProgram, limits: GraphLimits) -> Iterator[tuple[Candidate, ...]]:
    blocks = [found.block for found in Search(program, Limits(seconds=1.0, max_topologies=8)).run()]
    known = kernel_candidates(blocks, H200)
    search = KernelGraphs(program, H200, limits, blocks=blocks, candidates=known, seconds=60.0)
    for found in search.run():
        yield found.candidates


def two_outputs(count: int = 64) -> TensorProgram:
    """h = x + r and its norm: both are returned."""
    b = Builder("residual_norm", m=8, h=count)
    x, r = b.input("x", "m", "h"), b.input("r", "m", "h")
    h = b.add("h_sum", x, r)
    normed = b.rms("y", h, "h")
    program = b.program(normed, "m", "h")
    dims = (("m",), ("h",))
    other = Tensor("residual", dims, contiguous_strides(dims, program.sizes), "f16", "residual")
    return replace(program, outputs={h: other, **program.outputs})


# --- the dynamic programming


def _cost(part: Part) -> float:
    return 1.0 + random.Random(repr((part.values, sorted(part.leaves)))).random() * 4


def _brute_force(program: TensorProgram, stored: frozenset[str], most: int, kernels: int) -> float:
    """Every set of stored values; each kernel reads whichever of them it likes best."""
    cuts = Partitions(program, stored, most)
    (output,) = program.outputs
    best = float("inf")
    for count in range(kernels):
        for chosen in itertools.combinations(sorted(stored), count):
            total = 0.0
            for value in (output, *chosen):
                ways = [_cost(part) for part in cuts.parts(value) if part.leaves <= set(chosen)]
                total += min(ways, default=float("inf"))
            best = min(best, total)
    return best


@pytest.mark.parametrize("kernels", [1, 2, 3, 5])
def test_partitions_agree_with_brute_force(kernels: int) -> None:
    several = 0
    for program in programs()[::8]:
        (output,) = program.outputs
        stored = frozenset(op.name for op in program.compute_ops if op.name != output)
        found = Partitions(program, stored, 3).best(
            lambda part: [(1, _cost(part))] if len(part.values) == 1 else [], kernels, 4, float("inf")
        )
        assert found[0].us == pytest.approx(_brute_force(program, stored, 3, kernels))
        assert [one.us for one in found] == sorted(one.us for one in found)
        several += len(found[0].parts) > 1
        for partition in found:
            assert sum(count for _, count in partition.parts) <= kernels
            made: set[str] = set()
            for part, _ in partition.parts:
                assert part.leaves <= made
                made.update(part.values)
            assert set(program.outputs) <= made
    assert several == 0 or kernels > 1


@pytest.mark.parametrize("within", [9.0, float("inf")])
def test_the_best_partitions_are_the_first_of_all(within: float) -> None:
    """Whatever was asked for before, and though many take equally long."""
    several = 0
    for program in programs()[1::16]:
        stored = frozenset(op.name for op in program.compute_ops)
        cuts = Partitions(program, stored, 3)
        for coarse in (1.0, 4.0):

            def options(part: Part, coarse: float = coarse) -> list[tuple[int, float]]:
                us = _cost(part) // coarse + 1
                return [(1, us), (2, us - 0.5)]

            every = Partitions(program, stored, 3).best(options, 4, 1_000_000, within)
            for keep in (1, 5):
                assert cuts.best(options, 4, keep, within) == every[:keep]
            assert all(one.us == sum(dict(options(part))[count] for part, count in one.parts) for one in every)
            assert all(one.us <= within for one in every)
            several += len(every) > 20
    assert several


@pytest.mark.parametrize("looks", [0, 12])
def test_a_list_of_partitions_that_is_ended_has_those_met_and_says_so(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_LOOK", 1)  # as if it had many values
    program = max(programs(), key=lambda one: len(one.compute_ops))
    stored = frozenset(op.name for op in program.compute_ops)
    asked = itertools.count()
    cuts = Partitions(program, stored, 3)

    def options(part: Part) -> list[tuple[int, float]]:
        return [(1, _cost(part))]

    ended = cuts.best(options, 8, 1_000_000, float("inf"), lambda: next(asked) >= looks)
    assert cuts.is_late
    assert next(asked) == looks + 1, "once over it is over"
    every = cuts.best(options, 8, 1_000_000, float("inf"))
    assert not cuts.is_late
    assert min(looks, 1) <= len(ended) < len(every)
    assert {one.parts for one in ended} <= {one.parts for one in every}


def test_values_that_are_handed_over_are_not_those_a_step_takes_further() -> None:
    names = worth_storing(rmsnorm_linear(), in_memory(rmsnorm_linear()))
    assert names == {"norm_square", "norm_root", "scaled"}
    assert {"gate", "value", "up"} <= worth_storing(gated_mlp(), in_memory(gated_mlp())) | {"gate"}


# --- one problem under two names


def _projections() -> TensorProgram:
    b = Builder("two_projections", m=16, h=64, n=32)
    x, w, v = b.input("x", "m", "h"), b.input("w", "h", "n"), b.input("v", "h", "n")
    return b.program(b.mul("y", b.dot("q", x, w, "h"), b.dot("k", x, v, "h")), "m", "n")


def test_programs_that_differ_in_names_are_solved_once() -> None:
    program = _projections()
    stored = in_memory(program)
    one, two = (subprogram(program, [name], [], stored) for name in ("q", "k"))
    assert key_of(one)[0] == key_of(two)[0]
    assert key_of(one)[0] != key_of(subprogram(program, ["y"], ["q"], stored))[0]
    solver = Solver(H200, Limits(seconds=0.5), lambda: False)
    first, second = solver.solve(one), solver.solve(two)
    assert (solver.searched, solver.recalled) == (1, 1)
    assert [c.estimate_us for c in first.candidates] == [c.estimate_us for c in second.candidates]
    for solved, small in ((first, one), (second, two)):
        for candidate in solved.candidates[::6]:
            assert verify_topologies(small, [(k.block, None) for k in candidate.kernels], seed=1).passed
            assert {t.name for t in candidate.block.inputs} <= {t.name for t in small.tensors}


def test_sizes_types_and_layouts_count() -> None:
    program = _projections()
    longer = replace(program, sizes={**program.sizes, "h": 128})
    turned = replace(
        program, tensors=(program.tensors[0], replace(program.tensors[1], strides=(1, 64)), program.tensors[2])
    )
    assert len({key_of(p)[0] for p in (program, longer, turned)}) == 3


def test_a_causal_mask_is_read_by_nobody_and_handed_over_by_nobody() -> None:
    """Scores with a mask: where they are cut, a kernel makes the mask itself."""
    b = Builder("causal", q=64, k=64, d=32)
    b.dot("scores", b.input("query", "q", "d"), b.input("key", "k", "d"), "d")
    ops = (
        *b.ops,
        Op("mask", Kind.MASK, (), ("k", "q"), rows=("q",), columns=("k",)),
        Op("kept", Kind.MUL, ("scores", "mask"), ("k", "q")),
        Op("total", Kind.SUM, ("kept",), ("q",), ("k",)),
    )
    out = Tensor("out", (("q",),), (1,), "f16", "out")
    program = TensorProgram("masked", b.sizes, tuple(b.tensors), ops, {"total": out})
    assert check_program(program) == []
    assert "mask" not in worth_storing(program, in_memory(program))
    found = list(graphs_of(program, replace(LITTLE, variants=0)))
    assert found
    for candidates in found:
        verdict = verify_topologies(program, [(k.block, None) for k in candidates[0].kernels], seed=2)
        assert verdict.passed, verdict.reason
    turned = replace(program, ops=tuple(replace(op, rows=op.columns, columns=op.rows) for op in program.ops))
    assert key_of(program)[0] != key_of(turned)[0]


# --- what is found


def _small(block: BlockGraph) -> Schedule:
    """Two-wide tiles of every axis that may have them."""
    return Schedule(tuple((axis, 2) for axis in grid_axes(block)), dict.fromkeys(block.loop_axes, 2))


@pytest.mark.parametrize("chunk", range(4))
def test_kernel_graphs_of_random_programs_are_right(chunk: int) -> None:
    checked = 0
    for number, program in enumerate(programs()[chunk * 80 : (chunk + 1) * 80 : 8]):
        inputs = random_inputs(program, number)
        with np.errstate(over="ignore"):
            expected = evaluate_program(program, inputs)
        if not np.isfinite(expected).all():
            continue
        (tensor,) = program.outputs.values()
        for candidates in graphs_of(program, LITTLE):
            kernels = [(kernel.block, _small(kernel.block)) for kernel in candidates[0].kernels]
            memory = execute_kernels(kernels, {k: v[None] for k, v in inputs.items()}, FloatArithmetic())
            result = spread(tensor, memory[tensor.name][0], sorted(program.sizes))
            np.testing.assert_allclose(result, np.broadcast_to(expected, result.shape), rtol=1e-7)
            checked += 1
    assert checked > 5


CUT = (rmsnorm_linear(64, 1024, 2048), gemm_chain(2, 256, 256, 64, 64), attention(2, 64, 512, 32))


@pytest.mark.parametrize("program", CUT, ids=lambda program: program.name)
def test_every_graph_is_valid_and_equal_to_the_program(program: TensorProgram) -> None:
    found = list(graphs_of(program, GraphLimits(max_parts=8, partitions=6, slack=4.0, variants=1)))
    assert found
    for candidates in found[:8]:
        assert 2 <= len(candidates[0].kernels) <= 5
        assert candidates[0].estimate_us == min(one.estimate_us for one in candidates)
        for kernel in candidates[0].kernels:
            assert check_candidate(kernel.block, kernel.schedule, H200) == []
        assert not all(kernel.schedule.library for kernel in candidates[0].kernels)
        verdict = verify_topologies(program, [(k.block, None) for k in candidates[0].kernels], seed=3)
        assert verdict.passed, verdict.reason


def test_a_norm_and_the_librarys_product_where_there_are_many_rows() -> None:
    best = min(
        (one for found in graphs_of(rmsnorm_linear(512, 1024, 4096), GraphLimits(max_parts=8)) for one in found),
        key=lambda one: one.estimate_us,
    )
    first, second = best.kernels
    assert second.schedule.library
    assert not first.schedule.library
    assert not any(op.kind is Kind.DOT for op in first.block.ops)
    call = library_call(second.block)
    assert call is not None
    assert call.shown == "torch.mm(scaled, w)"
    # A step leaves the library's kernel as it is.
    steps = neighbours(best, H200)
    assert steps
    assert all(step.then == best.then for step in steps)


def test_one_kernel_is_no_kernel_graph() -> None:
    assert list(graphs_of(rmsnorm_linear(64, 256, 256), GraphLimits(max_kernels=1))) == []


def test_it_can_be_cancelled() -> None:
    program = rmsnorm_linear(64, 1024, 2048)
    search = KernelGraphs(program, H200, cancelled=lambda: True)
    assert list(search.run()) == []
    assert search.stats.ended_by == "cancelled"
    assert not search.stats.complete


# --- several outputs


def test_two_outputs_in_one_kernel() -> None:
    program = two_outputs()
    stored = in_memory(program)
    both = subprogram(program, ["h_sum", "y"], [], stored)
    assert check_program(both) == []
    candidate = Solver(H200, Limits(seconds=0.5), lambda: False).solve(both).candidates[0]
    assert [tensor.name for tensor in candidate.block.outputs] == ["residual", "out"]
    assert sum(op.kind is Kind.ADD and set(op.inputs) == {"x", "r"} for op in candidate.block.ops) == 1
    assert check_candidate(candidate.block, candidate.schedule, H200) == []
    assert verify_topologies(program, [(candidate.block, None)], seed=2).passed


def test_two_outputs_in_two_kernels_of_which_one_reads_the_other() -> None:
    program = two_outputs(4096)
    found = [one[0] for one in KernelGraphsOf(program)]
    assert found
    for candidate in found:
        verdict = verify_topologies(program, [(k.block, None) for k in candidate.kernels], seed=2)
        assert verdict.passed, verdict.reason
    assert any("residual" in {t.name for t in one.kernels[-1].block.inputs} for one in found)


def KernelGraphsOf(program: TensorProgram) -> Iterator[tuple[Candidate, ...]]:
    for found in KernelGraphs(program, H200, GraphLimits(max_parts=6, slack=20.0)).run():
        yield found.candidates


def test_other_loops_or_other_axes_are_not_merged() -> None:
    program = _projections()
    stored = in_memory(program)
    one = as_block(subprogram(program, ["q"], [], stored))
    other = as_block(subprogram(program, ["k"], [], stored))
    both = merged(one, other)
    assert both is not None
    assert sum(op.kind is Kind.LOAD for op in both.ops) == 3
    small = as_block(subprogram(rmsnorm_linear(), ["norm_root"], [], in_memory(rmsnorm_linear())))
    assert merged(one, small) is None
    looped = next(found.block for found in Search(_projections(), Limits(seconds=0.3)).run() if found.block.loops)
    assert merged(looped, as_block(subprogram(program, ["q"], [], stored))) is None
    columns = replace(one.outputs[0], name="columns", dims=(("n",), ("p",)), strides=(32, 1))
    store = Op("store_columns", Kind.STORE, ("q",), ("n", "p"), tensor="columns")
    assert merged(one, replace(other, tensors=(columns,), ops=(*other.ops[:-1], store))) is None


# --- pre-defined kernels


def _product(
    left: tuple[str, ...], right: tuple[str, ...], out: tuple[str, ...], strides: dict[str, tuple[int, ...]]
) -> LibraryCall | None:
    b = Builder("product", b=3, m=4, n=5, k=6)
    over = sorted(set(left) & set(right) - set(out))
    program = b.program(b.dot("y", b.input("left", *left), b.input("right", *right), *over), *out)
    tensors = tuple(replace(t, strides=strides.get(t.name, t.strides)) for t in program.tensors)
    return library_call(as_block(replace(program, tensors=tensors)))


@pytest.mark.parametrize(
    ("left", "right", "out", "strides", "shown"),
    [
        (("m", "k"), ("k", "n"), ("m", "n"), {}, "torch.mm(left, right)"),
        (("m", "k"), ("n", "k"), ("m", "n"), {}, "torch.mm(left, right.mT)"),
        (("b", "m", "k"), ("b", "k", "n"), ("b", "m", "n"), {}, "torch.bmm(left, right)"),
        (("b", "m", "k"), ("k", "n"), ("b", "m", "n"), {}, "torch.mm(left.view(12, 6), right)"),
        (("m", "k"), ("k", "n"), ("m", "n"), {"left": (8, 1)}, "torch.mm(left, right)"),
        (
            ("m", "b", "k"), ("b", "k", "n"), ("b", "m", "n"), {},
            "torch.bmm(left.as_strided((3, 4, 6), (6, 18, 1)), right)",
        ),
        (("m", "k"), ("k", "n"), ("m", "n"), {"left": (12, 2)}, None),
        (("m", "k"), ("k", "n"), ("m", "n"), {"left": (0, 1)}, None),
        (("m", "b", "k"), ("k", "n"), ("b", "m", "n"), {}, None),
    ],
)  # fmt: skip
def test_products_a_library_computes(
    left: tuple[str, ...],
    right: tuple[str, ...],
    out: tuple[str, ...],
    strides: dict[str, tuple[int, ...]],
    shown: str | None,
) -> None:
    call = _product(left, right, out, strides)
    assert (call.shown if call is not None else None) == shown


def test_what_is_no_product_is_generated() -> None:
    program = gated_mlp(8, 64, 32)
    assert library_call(as_block(program)) is None
    assert check_candidate(as_block(program), Schedule((), library=True)) == [
        "no library call computes it without a copy"
    ]


def test_a_statistic_is_handed_over_in_float32() -> None:
    """The norm of a long row of float16 is beyond that type, where its quotient is not."""
    b = Builder("normed", m=8, h=64)
    x = b.input("x", "m", "h")
    normed = b.rms("y", x, "h")
    program = b.program(normed, "m", "h")
    inner = {op.name for op in program.compute_ops if op.name != normed}
    stored = in_memory(program)
    assert {stored[name].dtype for name in inner} == {"f32"}
    assert stored[normed].dtype == "f16"

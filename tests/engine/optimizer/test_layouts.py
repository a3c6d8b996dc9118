"""Layouts of what kernels hand to one another: the best by estimate, never worse, and right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import contiguous_strides
from mugraph.optimizer.layouts import GAIN, Problem, layout_problem, layouts_of, relaid, solved, with_layouts
from mugraph.sizes.text import text_checked
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_schedules, verify_topologies

from tests.engine.codegen.norm_and_product import normed
from tests.support.column_sums import Kernels, column_sums

H200 = TARGETS["h200"]


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def a_candidate(kernels: Kernels, problem: Problem) -> Candidate:
    found: Candidate | None = None
    for block, schedule in reversed(kernels):
        found = Candidate(block, schedule, problem.us(problem.usual), found)
    assert found is not None
    return found


def brute(problem: Problem) -> float:
    numbers = product(*(range(len(every)) for every in problem.layouts.values()))
    return min(problem.us(dict(zip(problem.layouts, one, strict=True))) for one in numbers)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Kernels with some of up to four tensors; some combinations are not to be had."""
    tensors = {f"t{at}": [((f"axis {one}",),) for one in range(draw(st.integers(1, 3)))] for at in range(4)}
    costs: list[tuple[tuple[str, ...], dict[tuple[int, ...], float]]] = []
    for _ in range(draw(st.integers(1, 4))):
        names = tuple(draw(st.lists(st.sampled_from(sorted(tensors)), unique=True, max_size=3)))
        every = list(product(*(range(len(tensors[name])) for name in names)))
        table = {one: float(draw(st.integers(1, 40))) / 4 for one in every}
        for one in draw(st.lists(st.sampled_from(every), max_size=2)):
            if any(one):  # as it lies it can be
                table.pop(one, None)
        costs.append((names, table))
    return Problem(tensors, costs)


@settings(max_examples=60)
@given(problems())
def test_no_choice_is_better(problem: Problem) -> None:
    found = solved(problem)
    assert found.keys() == problem.layouts.keys()
    assert problem.us(found) == pytest.approx(brute(problem))
    assert problem.least_us <= problem.us(found) <= problem.us(problem.usual)


def test_a_tensor_that_the_next_kernel_reads_along_another_axis_is_turned(tester: FloatTester) -> None:
    """Each block of the second kernel takes one column. The first writes tiles, to which both orders are the same."""
    program, kernels = column_sums(m=64, n=256, columns=1)
    problem = layout_problem(kernels, H200)
    assert [len(every) for every in problem.layouts.values()] == [2]
    usual = a_candidate(kernels, problem)
    found = relaid(usual, H200)
    assert found is not None
    assert found.estimate_us == pytest.approx(brute(problem))
    assert usual.estimate_us > GAIN * found.estimate_us
    turned = [(one.block, one.schedule) for one in found.kernels]
    for block, tensors in zip((one for one, _ in turned), ("outputs", "inputs"), strict=True):
        (tensor,) = [one for one in getattr(block, tensors) if one.name == "h"]
        assert tensor.dims == (("n",), ("m",))
        assert tensor.strides == (64, 1)
    assert_right(program, turned, tester)
    assert relaid(found, H200) is None  # there is nothing better than the best


def assert_right(program: TensorProgram, kernels: Kernels, tester: FloatTester) -> None:
    assert verify_topologies(program, [(block, None) for block, _ in kernels], seed=4).passed
    assert verify_schedules(program, kernels, seed=4).passed
    source = lower_kernels(kernels)
    text = text_checked(program, source, kernels)
    assert text.passed, text.reason
    tested = tester.test_kernel(source, program)
    assert tested.passed, tested.reason


def test_half_a_turn_is_found_wrong(tester: FloatTester) -> None:
    """A kernel that reads in the old order what another one writes in the new one."""
    program, kernels = column_sums(m=64, n=256, columns=1)
    (first, schedule), second = kernels
    half = [(with_layouts(first, {"h": (("n",), ("m",))}), schedule), second]
    assert not text_checked(program, lower_kernels(half), half).passed


def test_what_suits_both_kernels_stays_as_it_is() -> None:
    _, kernels = column_sums(m=64, n=256, columns=64)
    problem = layout_problem(kernels, H200)
    assert relaid(a_candidate(kernels, problem), H200) is None


def test_what_has_gaps_or_no_place_to_turn_has_one_layout() -> None:
    _, [(first, _), _] = column_sums(m=64, n=256, columns=64)
    tensor = next(one for one in first.outputs if one.name == "h")
    assert layouts_of(tensor, first.sizes) == [(("m",), ("n",)), (("n",), ("m",))]
    assert layouts_of(replace(tensor, strides=(512, 1)), first.sizes) == [tensor.dims]
    row = {"m": 1, "n": 256}
    assert layouts_of(replace(tensor, strides=contiguous_strides(tensor.dims, row)), row) == [tensor.dims]


def test_a_layout_that_no_processor_holds_is_none() -> None:
    """The tile of the first kernel is too large to change places in shared memory."""
    _, [(first, _), second] = column_sums(m=4096, n=4096, columns=1)
    kernels = [(first, Schedule((("m", 4096), ("n", 256)), num_warps=1)), second]
    problem = layout_problem(kernels, H200)
    assert [sorted(table) for _, table in problem.costs] == [[(0,)], [(0,), (1,)]]
    assert relaid(a_candidate(kernels, problem), H200) is None
    nothing = replace(H200, shared=0)
    assert relaid(a_candidate(kernels, layout_problem(kernels, nothing)), nothing) is None


def test_a_kernel_of_pytorchs_is_asked_what_it_accepts() -> None:
    """The product takes the norm's result in both orders, the second as `h.mT`; as rows it costs the norm less."""
    _, kernels = normed()
    problem = layout_problem(kernels, H200)
    assert [sorted(table) for _, table in problem.costs] == [[(0,), (1,)], [(0,), (1,)]]
    assert solved(problem) == {"h": 0}
    block, schedule = kernels[1]
    softmax = replace(block, ops=tuple(replace(op, kind=Kind.MAX) if op.kind.contracts else op for op in block.ops))
    assert [table for _, table in layout_problem([kernels[0], (softmax, schedule)], H200).costs][1] == {}

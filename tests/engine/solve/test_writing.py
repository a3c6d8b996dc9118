"""Candidates as kernels: in other layouts first where those are expected to be faster, then as they were."""

from __future__ import annotations

from mugraph.ir.block import Candidate
from mugraph.optimizer.layouts import layout_problem
from mugraph.sizes.table import SizeTable
from mugraph.solve.search_unit import output_names
from mugraph.solve.writing import written
from mugraph.targets import TARGETS
from mugraph.verification.verdict import Verdict

from tests.support.column_sums import column_sums

H200 = TARGETS["h200"]


def orders(columns: int, without: frozenset[str] = frozenset(), most: int = 4) -> list[tuple[str, ...]]:
    """Of what is handed over, in the kernels that are written."""
    program, kernels = column_sums(m=64, n=256, columns=columns)
    problem = layout_problem(kernels, H200)
    us = problem.us(problem.usual)
    (first, schedule), (second, its) = kernels
    candidate = Candidate(first, schedule, us, Candidate(second, its, us / 2))
    table = SizeTable(program, H200, output_names(program))
    found = written([(candidate, Verdict(True))], table, "sums", most, measured=False, without=without)
    assert not found.rejected
    times = [variant.candidate.estimate_us for variant, _ in found.variants]
    assert times == sorted(times)
    assert times[-1] == us or most == 1
    made = [next(one for one in variant.kernel.parts[0].outputs if one.name == "h") for variant, _ in found.variants]
    return [tuple(axis for dim in tensor.dims for axis in dim) for tensor in made]


def test_the_faster_layout_first_and_then_the_usual_one() -> None:
    assert orders(columns=1) == [("n", "m"), ("m", "n")]
    assert orders(columns=1, most=1) == [("n", "m")]


def test_the_usual_one_alone_where_no_other_is_faster() -> None:
    assert orders(columns=64) == [("m", "n")]


def test_layouts_can_be_left_out() -> None:
    assert orders(columns=1, without=frozenset({"layouts"})) == [("m", "n")]

"""Products that the program lets be rounded to TF32: their kernels are found, estimated faster, right by the rule that
this makes, and wrong where the program has no mark, or where bits are cut off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import PRECISIONS, TF32, BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec.schedule import schedule_violations
from mugraph.ir.text import parse_program
from mugraph.ir.text.lines import TextError
from mugraph.ir.transforms.renaming import canonical
from mugraph.search.direct import as_block
from mugraph.search.run import Search
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.search.schedules.sizes import ScheduleLimits, schedules
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.text import text_checked
from mugraph.store.keys import region_key
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester

TARGET = TARGETS["h200"]
NORM = """\
program norm_linear
  axes b={b}, h={h}, n={n}
  tensor x f32[b, h]
  tensor w f32[n, h]
  x[b, h] = load(x)
  w[h, n] = load(w)
  squares[b, h] = mul(x, x)
  total[b] = sum(squares, over=h)
  root[b] = sqrt(total)
  y[b, h] = div(x, root)
  z[b, n]{mark} = dot(y, w, over=h)
  output z -> z f32[b, n]
"""


LONE = """\
program product
  axes b=4096, h=4096, n=4096
  tensor x f32[b, h]
  tensor w f32[n, h]
  x[b, h] = load(x)
  w[h, n] = load(w)
  z[b, n]{mark} = dot(x, w, over=h)
  output z -> z f32[b, n]
"""
MARKS = ("", ": tf32.cublas", ": tf32.cudnn")


def program(mark: str, b: int = 48, h: int = 96, n: int = 32) -> TensorProgram:
    return parse_program(NORM.format(mark=mark, b=b, h=h, n=n))


MARKED, EXACT = program(": tf32.cublas"), program("")


@cache
def found(mark: str = ": tf32.cublas") -> BlockGraph:
    """A topology with a loop."""
    return next(one.block for one in Search(program(mark), Limits(seconds=8)).run() if one.block.loop_axes)


@cache
def kernel(precision: str = TF32) -> tuple[KernelSource, Schedule]:
    every = schedules(found(), TARGET, ScheduleLimits(max_candidates=10_000))
    schedule = next(one.schedule for one in every if one.schedule.precision == precision)
    return lower(found(), schedule, target=TARGET), schedule


def test_the_mark_is_part_of_what_a_program_is() -> None:
    others = [EXACT, MARKED, program(": tf32.cudnn")]
    assert len({region_key(canonical(one)[0], TARGET) for one in others}) == len(others)
    with pytest.raises(TextError, match="no precision"):
        parse_program(NORM.replace("total[b]", "total[b]: tf32.cublas").format(mark="", b=2, h=2, n=2))
    with pytest.raises(TextError, match="no precision"):
        program(": bf16")


def test_products_of_a_topology_have_it_and_sums_of_squares_have_not() -> None:
    products = [op for op in found().ops if op.kind.contracts]
    matrices = [op for op in products if set(op.axes) == {"b", "n"}]
    assert matrices
    assert all(op.tf32 == ("cublas" if op in matrices else "") for op in products)
    assert not any(op.tf32 for op in found("").ops)


def test_it_is_a_choice_of_marked_products_alone() -> None:
    every = ScheduleLimits(max_candidates=10_000)
    assert {one.schedule.precision for one in schedules(found(), TARGET, every)} == set(PRECISIONS)
    assert TF32 not in {one.schedule.precision for one in schedules(found(""), TARGET, every)}
    (reason,) = schedule_violations(found(""), kernel()[1], None, for_codegen=True)
    assert "no product of the program may" in reason


def test_large_products_are_estimated_faster_with_it() -> None:
    block = as_block(program(": tf32.cublas", 4096, 4096, 4096))
    looped = replace(found(), sizes=block.sizes)
    best = schedules(looped, TARGET)[0]
    exact = schedules(looped, TARGET, ScheduleLimits(precisions=tuple(p for p in PRECISIONS if p != TF32)))[0]
    assert best.schedule.precision == TF32
    assert best.estimate_us < exact.estimate_us


def test_a_library_takes_it_by_its_own_setting() -> None:
    calls = {mark: library_call(as_block(parse_program(LONE.format(mark=mark)))) for mark in MARKS}
    us = {mark: estimate_call_us(call, TARGET) for mark, call in calls.items() if call is not None}
    assert us[": tf32.cublas"] < us[""] / 3
    assert us[": tf32.cudnn"] == us[""]  # a product of matrices goes by cuBLAS's setting, which is off


def test_its_kernel_rounds_and_is_right(tester: FloatTester) -> None:
    source, schedule = kernel()
    assert source.takes_tf32
    assert 'input_precision="tf32"' in source.jit
    result = tester.test_kernel(source, MARKED)
    assert result.passed, result.reason
    text = text_checked(MARKED, source, [(found(), schedule)])
    assert text.passed, text.reason


def test_other_precisions_stay_right(tester: FloatTester) -> None:
    source, _ = kernel("ieee")
    assert not source.takes_tf32
    assert tester.test_kernel(source, MARKED).passed


def test_cut_off_bits_are_no_rounding(tester: FloatTester) -> None:
    source, schedule = kernel()
    assert "+ 4096" in source.jit
    cut = replace(source, jit=source.jit.replace("+ 4096", "+ 0"))
    assert not tester.test_kernel(cut, MARKED).passed
    assert not text_checked(MARKED, cut, [(found(), schedule)]).passed


def test_it_is_wrong_where_the_program_has_no_mark(tester: FloatTester) -> None:
    source, schedule = kernel()
    assert "times what rounding explains" in (tester.test_kernel(source, EXACT).reason or "")
    text = text_checked(EXACT, source, [(found(), schedule)])
    assert "float32 numbers are rounded to tf32, which the program does not let be" in (text.reason or "")


def test_nothing_else_is_let_be(tester: FloatTester) -> None:
    source, _ = kernel()
    root = "tl.rsqrt(" if "tl.rsqrt(" in source.jit else "tl.sqrt("
    for right, wrong in ((root, f"1.001 * {root}"), ("+ 4096) & -8192", "+ 32768) & -65536")):  # seven bits for ten
        assert right in source.jit
        spoiled = replace(source, jit=source.jit.replace(right, wrong))
        assert not tester.test_kernel(spoiled, MARKED).passed, wrong


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=200) as tester:
        yield tester

"""The kernels generated for the samples are right in Triton's interpreter, compile for an A100 and an H100, and fit.

Nothing is measured, so no GPU is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.events import FileResult, Solution, UnitResult
from mugraph.ir.kernel import KernelSource
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.ops import Kind
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.reduced import program_sizes, reduced_kernels
from mugraph.ir.transforms.resizing import resize
from mugraph.optimizer.nodes import scheduled
from mugraph.options import Bounds
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place
from mugraph.solve.testing import output_names
from mugraph.solve.tools import Tools
from mugraph.targets import TARGETS, Target
from mugraph.verification.float_test import FloatTester

from tests.support.clock import slow_clock
from tests.support.searched import BUDGET_S

pytestmark = pytest.mark.timeout(600)  # it may wait for a search of another worker

H100, A100 = TARGETS["h100"], TARGETS["sm_80"]
WITHOUT_SHAPES = {"rotary_tables"}
"""A helper of llama_block.py: called by no forward that is traced, so nothing says its shapes."""
SPLIT = {"gqa_attention", "gqa_decode", "mha", "mqa"}
"""Files whose every region has few rows and thousands of keys: by estimate they are split over the keys."""


def solved_for(target: Target, unit: SearchUnit, name: str, tester: FloatTester) -> Solution:
    steps = solve(unit, Place(0, 0, 1, name, name), Tools(target, tester), Bounds(BUDGET_S))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: UnitResult = end.value
            assert result.solution is not None, result.reason
            return result.solution


def assert_verified(found: UnitResult) -> None:
    """It says what was proved, and how soon in its search: before the search's own end."""
    assert found.solution is not None, found.reason
    verdict = found.solution.verdict
    assert verdict.passed
    assert verdict.repetitions > 0
    if found.solution.tested:
        assert verdict.float_device == "interpreter"
        assert verdict.max_rel_error is not None
    else:  # it is shown, and never offered
        assert verdict.float_device is None
        assert not found.solution.is_expected_to_pay
    assert found.search.first_verified_s is not None
    reused = found.search.total_s == 0  # solved a moment ago under other names
    assert reused or 0 < found.search.first_verified_s <= found.search.total_s
    if found.search.topologies == 0:  # joined, and no one kernel has all its outputs: a graph of several then
        assert len(found.unit.program.outputs) > 1
        assert len(found.solution.kernels) > 1
    assert found.search.candidates > 0


def assert_split(found: UnitResult) -> None:
    """FlashDecoding's form (Mirage v1, Figure 4b): a kernel over parts of the keys, one that adds and divides."""
    assert found.solution is not None
    first, second = found.solution.kernels
    assert isinstance(first, GraphKernel)
    assert isinstance(second, GraphKernel)
    (handed,) = {tensor.axes[0] for tensor in first.block.outputs}
    assert first.block.sizes[handed] in (2, 4, 8, 16, 32, 64)
    assert [op.kind for op in second.block.block_ops].count(Kind.SUM) == 2
    assert any(op.kind is Kind.DIV for op in second.block.block_ops)


def assert_right(solution: Solution, unit: SearchUnit, tester: FloatTester) -> None:
    """The candidate's kernel at other sizes and on other inputs than those the pipeline tested."""
    kernels = [scheduled(kernel) for kernel in solution.kernels]
    returned = output_names(unit.program)
    assert lower_kernels(kernels, outputs=returned).jit == solution.source.jit
    small = reduced_kernels(kernels, largest_tile=16, whole=48)
    program = resize(unit.program, program_sizes(unit.program, small))
    tested = tester.test_kernel(lower_kernels(small, outputs=returned), program, seed=7)
    assert tested.passed, tested.reason


def fits(source: KernelSource, target: Target) -> bool:
    compiled = compile_for(source, target.capability)
    assert compiled.cubin
    return compiled.shared_bytes <= target.shared


@pytest.fixture
def tester() -> Iterator[FloatTester]:
    with slow_clock(), FloatTester() as tester:
        yield tester


def test_kernels(result: FileResult, tester: FloatTester) -> None:
    name = Path(result.path).stem
    seen: set[str] = set()
    for region in result.regions:
        function = region.region.function
        if function in WITHOUT_SHAPES:
            assert region.status == "needs-shapes"
            continue
        assert region.status in ("improved", "no-gain"), f"{function}: {region.reason}"
        assert region.units, function
        for found in region.units:
            assert_verified(found)
            assert found.solution is not None
            if name in SPLIT:
                assert_split(found)
            text = found.solution.source.standalone().replace(found.solution.source.name, "")
            if text in seen:
                continue
            seen.add(text)
            assert_right(found.solution, found.unit, tester)
            assert fits(found.solution.source, H100), function
            if not fits(found.solution.source, A100):  # it was scheduled for an H100's larger shared memory
                other = solved_for(A100, found.unit, found.solution.source.name, tester)
                assert_right(other, found.unit, tester)
                assert fits(other.source, A100), function
    assert seen

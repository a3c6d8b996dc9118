"""What no single kernel holds is computed by several, within the seconds of the search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mugraph.events import Done, RegionResult
from mugraph.options import Bounds
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep
from mugraph.search.topologies.limits import Stats, never
from mugraph.solve.one_kernel import topologies_of_one
from mugraph.solve.telling import Place, Telling
from mugraph.solve.tools import Tools
from mugraph.solve.verdicts import Verdicts
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester

from tests.engine.search.row_programs import group_norm
from tests.support.clock import slow_clock

NORMED = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[16, 32, 128, 256], scale=f32[32, 1, 1], weight=f32[32], bias=f32[32]
def normed(x, scale, weight, bias):
    return F.group_norm(torch.sigmoid((x + scale) * scale), 8, weight, bias)
"""

SOFTMAX = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[512, 256], w=f32[8192, 256], b=f32[8192], mean=f32[8192], var=f32[8192], gain=f32[8192]
def scores(x, w, b, mean, var, gain):
    return torch.softmax((F.linear(x, w, b) - mean) / torch.sqrt(var.abs() + 1e-5) * gain, dim=1)
"""


def solved(path: Path, text: str) -> RegionResult:
    path.write_text(text)
    options = Options(target="h100", measure=False, budget_s=10, compare_with="code")
    (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    (result,) = done.result.regions
    return result


@pytest.mark.parametrize(
    ("text", "kernels"),
    [(NORMED, {2, 3}), pytest.param(SOFTMAX, {2, 3}, marks=pytest.mark.more)],
    ids=["norm", "softmax"],
)
def test_it_is_found_and_right(tmp_path: Path, text: str, kernels: set[int]) -> None:
    with slow_clock():
        result = solved(tmp_path / "model.py", text)
    assert result.status == "improved", result.reason
    assert result.plan is not None
    (step,) = [step for step in result.plan.steps if isinstance(step, KernelStep)]
    (unit,) = [found for found in result.units if found.unit is step.unit]
    assert unit.solution is not None
    assert len(unit.solution.kernels) in kernels
    verdict = unit.solution.verdict
    assert verdict.passed
    assert verdict.max_rel_error is not None, "its results, in the interpreter at small sizes"


def ended() -> Iterator[tuple[int, Stats]]:
    """Of the search for one kernel of a norm of long rows, and of short ones."""
    for pixels in (64516, 256):
        program = group_norm(4, pixels)
        tools = Tools(TARGETS["h100"], FloatTester())  # no kernel is run
        verdicts = Verdicts(program, tools.on, tools.verdicts)
        with slow_clock():
            telling = Telling(Place(0, 0, 1, "norm", "norm"))
            steps = topologies_of_one(program, tools, Bounds(1.0), never, verdicts, telling)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    blocks, stats = end.value
                    yield len(blocks), stats
                    break


def test_no_time_is_spent_on_one_kernel_where_none_fits() -> None:
    long, short = ended()
    assert long[0] <= 3, "one of each turn that had begun"
    assert long[1].ended_by == "fit"
    assert short[1].ended_by != "fit"

"""A device that says how long a plan takes, by how its kernels are launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mugraph.events import RegionResult
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.solve.filetime import FileTime
from mugraph.solve.overlapping import BESIDE, COMBINED, USUAL
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import Target
from mugraph.tune.measure import Compared
from mugraph.tune.messages import Agreed, Subject
from mugraph.verification.float_results import FloatResult

from tests.engine.solve.machine import TARGET, Machine
from tests.engine.solve.solving import solved_with

MARKS = {BESIDE: "_part(", COMBINED: "_body("}
"""What the texts of kernels have that are launched in a way."""


@dataclass
class Side(Machine):
    """Says how long the plan takes, by how its kernels are launched."""

    us: Mapping[str, float] = field(default_factory=lambda: {BESIDE: 8.0})
    right: bool = True
    agrees: bool = True
    timed: list[list[str]] = field(default_factory=list[list[str]])

    def compare_called(
        self, subjects: Sequence[Subject], inputs: object, ours: str, applied: object, **_: object
    ) -> Compared:
        names = [one.name for one in subjects]
        self.timed.append(names)
        if USUAL not in names:
            return super().compare_called(subjects, inputs, ours, applied)
        assert (ours, applied) == ("", None)
        self.check_texts(subjects)
        found = {name: replace(self._measured(1.0), median_us=self.us.get(name, 10.0)) for name in names}
        return Compared(dict(found), dict(found))

    def check_texts(self, subjects: Sequence[Subject]) -> None:
        """That each has what its name says."""
        for way, mark in MARKS.items():
            assert [mark in one.source for one in subjects] == [one.name.startswith(way) for one in subjects]

    def is_of_a_way(self, text: str) -> bool:
        return any(mark in text for mark in MARKS.values())

    def test_kernel(self, *given: object) -> FloatResult:
        wrong = self.is_of_a_way(cast(Any, given[0]).jit) and not self.right
        return FloatResult(not wrong, "it is wrong" if wrong else None, 1e-3, 1e-3, "a GPU")

    def agree(self, *given: object) -> Agreed:
        ours, reference = cast(Subject, given[0]), cast(Subject, given[1])
        assert reference.name == "eager"  # kernels cannot be run in double precision
        return Agreed(self.agrees or not self.is_of_a_way(ours.source), 0.0, 1e-3)


def solved_when_timed(
    trace: Trace,
    machine: Machine,
    name: str,
    target: Target = TARGET,
    store: Store | None = None,
    *,
    measured: bool = True,
    overlap: bool = True,
) -> RegionResult:
    it = cast(Any, machine if measured else None)
    tools = Tools(
        target, cast(Any, machine), compiled=measured, measurer=it, pool=it, peers=it, file_time=FileTime(500.0)
    )
    return solved_with(trace, name, tools, Options(budget_s=0.5, max_kernels=1, overlap=overlap), store)


def plan_of(result: RegionResult) -> RegionPlan:
    assert result.status == "improved", result.reason
    assert result.plan is not None
    return result.plan


def kernels_of(plan: RegionPlan) -> list[KernelStep]:
    return [step for step in plan.steps if isinstance(step, KernelStep)]

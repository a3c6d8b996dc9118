"""What a region's result says, once its units are solved: what is offered, or why nothing is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.events import RegionResult, SearchReport, Timing, UnitResult
from mugraph.ir.kernel import KernelSource
from mugraph.ir.region import Region
from mugraph.plans.plan import RegionPlan
from mugraph.sizes.timing import spans_of
from mugraph.solve.offering import NO_FASTER
from mugraph.solve.pytorch import nothing_to_gain
from mugraph.solve.timing import with_sizes
from mugraph.targets import Target
from mugraph.units.outside import outside_words
from mugraph.units.region_units import reasons_against

_NOT_EXPECTED = "the kernel found is not expected to be faster than PyTorch's own"


def without_units(region: Region, lost: Sequence[str], target: Target, report: SearchReport) -> RegionResult:
    """Where there is nothing to search, or nothing is left. lost: why units that were searched have no kernel"""
    said = "; ".join(dict.fromkeys([*reasons_against(region), *lost]))
    left = outside_words(region)
    status = "unsupported" if (said or left) and not lost else "no-gain"
    reason = said or "; ".join(filter(None, (left, nothing_to_gain(region, target))))
    return RegionResult(region, status, reason, search=report)


def without_kernels(region: Region, results: Sequence[UnitResult], report: SearchReport) -> RegionResult:
    """Where none of its units has one."""
    reasons = list(dict.fromkeys(found.reason for found in results if found.reason))
    if region.numbers and any(found.solution is not None for found in results):
        reasons.append("a number that varies is read by calls beside the kernels, to which it would be a tensor")
    return RegionResult(region, "no-gain", "; ".join(reasons) or None, units=tuple(results), search=report)


def not_paying(
    plan: RegionPlan,
    timing: Timing,
    sources: Mapping[str, KernelSource],
    results: Sequence[UnitResult],
    report: SearchReport,
) -> RegionResult:
    """Where no unit's kernel pays: what was found is shown. plan, timing: with all of them"""
    reasons = [found.reason for found in results if found.solution is not None and found.reason]
    reason = "; ".join(dict.fromkeys(reasons)) or timing.why_not or _NOT_EXPECTED
    return RegionResult(plan.region, "no-gain", reason, plan, sources, tuple(results), timing, report)


def of_plan(
    plan: RegionPlan,
    timing: Timing,
    reason: str | None,
    sources: Mapping[str, KernelSource],
    results: Sequence[UnitResult],
    report: SearchReport,
) -> RegionResult:
    """Of a plan that was timed. reason: why it cannot be offered, whatever its time is"""
    region = plan.region
    if timing.gains and reason is None:
        if timing.sizes:
            plan = with_sizes(plan, spans_of(timing.sizes))
        return RegionResult(region, "improved", None, plan, sources, tuple(results), timing, report)
    reason = reason or _at_each_size(plan, timing) or timing.why_not or NO_FASTER
    return RegionResult(region, "no-gain", reason, plan, sources, tuple(results), timing, report)


def _at_each_size(plan: RegionPlan, timing: Timing) -> str:
    """Of a range, why it is not offered at the sizes that it was timed at; "" without one."""
    made = plan.region.dynamic
    why = [f"{made.range.name} = {row.size}: {row.why_not or NO_FASTER}" for row in timing.sizes] if made else []
    return "; ".join(f"at {one}" for one in why)

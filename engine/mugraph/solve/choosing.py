"""Which way to divide a region is the fastest: where estimates are near one another, the plans are measured."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from mugraph.edit.module.entry import on_tensors
from mugraph.events import Event, Working
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.memory.timings import timing_key
from mugraph.ops.tf32 import settings_of
from mugraph.plans.plan import RegionPlan
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.divisions import Division
from mugraph.solve.timing import RegionTimer
from mugraph.store.keys import code_digest
from mugraph.targets import Target
from mugraph.tune.messages import Subject
from mugraph.tune.statistics import Summary

NEAR = 1.2
"""Times the least estimate: a way that is expected to take longer is not measured. (Of PyTorch's kernels 82 % of the
estimates are within 30 % of the measured times, and what differs between two ways is a part of the region.)"""
MOST = 3
"""Ways that are measured."""


@dataclass(frozen=True)
class Way:
    """A way to divide the region, and what would be written for it."""

    division: Division
    plan: RegionPlan
    sources: Mapping[str, KernelSource]


def near_ones(divisions: Sequence[Division], target: Target) -> list[Division]:
    """Those that are expected to take about as long as the fastest, it first; of the same parts the last one."""
    known = {one.parts_made: (us, one) for one in divisions if (us := one.us(target)) is not None}
    ranked = sorted(known.values(), key=lambda pair: pair[0])
    return [one for us, one in ranked if us <= NEAR * ranked[0][0]][:MOST]


def fastest_measured(ways: Sequence[Way], timer: RegionTimer) -> Generator[Event, None, Division | None]:
    """None where none can be measured."""
    found: list[tuple[float, Division]] = []
    for way in ways:
        us = yield from _measured_us(way, timer)
        if us is not None:
            found.append((us, way.division))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _measured_us(way: Way, timer: RegionTimer) -> Generator[Event, None, float | None]:
    plan, tools, specs = way.plan, timer.tools, timer.peers.specs(way.plan)
    if tools.measurer is None or specs is None:
        return None
    try:
        text = timer.module_text(plan, way.sources)
    except Rejected:  # which is said where the plan is timed
        return None
    subject = Subject("mugraph", text, on_tensors(plan), tf32=settings_of(plan.region.calls))
    key = timing_key(subject, specs, timer.device, (code_digest(), "alone"))
    known = timer.store.get(key) if timer.store is not None else None
    if known is not None and isinstance(us := known.get("us"), float):
        return us
    if tools.pool is not None:
        tools.pool.compile([*kernels_of_module(text, way.sources.values())])
    yield from timer.peers.quiet()
    yield Working(timer.number, f"measuring a way to divide {plan.name}")
    summary = tools.measurer.compare([subject], specs).get(subject.name)
    if not isinstance(summary, Summary):
        return None
    if timer.store is not None and not timer.cancelled():
        timer.store.put(key, {"us": summary.median_us})
    return summary.median_us

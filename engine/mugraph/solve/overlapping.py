"""Which kernels of a plan start while the kernel before them ends (codegen/early.py): measured, on a device that can.

The plan is timed with and without, on the device and as it is called. The fastest that is faster on one of the clocks
and slower on none is kept, once its text and its results have passed the tests that any kernel has to pass. Where
nothing is measured no kernel starts early: what that gains is a matter of a microsecond at a time, which no estimate
tells.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from dataclasses import replace

from mugraph.baseline.launches import launches
from mugraph.codegen.early import Form, overlapped
from mugraph.edit.module.entry import on_tensors
from mugraph.events import Event, Working
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.region import PlainCalls
from mugraph.memory.timings import timing_key
from mugraph.ops.tf32 import settings_of
from mugraph.optimizer.nodes import scheduled
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.sizes.same_bits import same_bits
from mugraph.sizes.text import text_checked
from mugraph.sizes.tuning import tested_at_sizes
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.timing import RegionTimer
from mugraph.store.keys import code_digest
from mugraph.tune.measure import Compared
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import CALLED_DRIFT, DRIFT, Summary, gain

_log = logging.getLogger("mugraph.solve")
Sources = Mapping[str, KernelSource]
USUAL = "one after the other"
FORMS: tuple[Form, ...] = ("loading", "asking")
"""That are tried: what kernels do before they wait."""


def overlapping(plan: RegionPlan, sources: Sources, timer: RegionTimer) -> Generator[Event, None, Sources]:
    """The plan's kernels, those that are given or the same launched early: what is fastest."""
    tools, specs = timer.tools, timer.specs(plan)
    if tools.measurer is None or not tools.target.launches_early or plan.region.dynamic is not None or specs is None:
        return sources
    ways: dict[str, Sources] = {USUAL: sources}
    for form in FORMS:
        early = early_sources(plan, sources, form)
        if early not in ways.values():
            ways[form] = early
    if len(ways) == 1:
        return sources
    try:
        texts = {name: timer.module_text(plan, one) for name, one in ways.items()}
    except Rejected:  # which is said where the plan is timed
        return sources
    tf32 = settings_of(plan.region.calls)
    subjects = {name: Subject(name, text, on_tensors(plan), tf32=tf32) for name, text in texts.items()}
    usual, *others = subjects.values()
    key = timing_key(usual, specs, timer.device, (code_digest(), *(one.source for one in others)))
    known = timer.store.get(key) if timer.store is not None else None
    if known is not None and known.get("kept") in ways:
        return ways[str(known["kept"])]
    if tools.pool is not None:
        for one in others:
            tools.pool.compile([*kernels_of_module(one.source, ways[one.name].values())])
    yield from timer.quiet()
    yield Working(timer.number, f"measuring {plan.name} with kernels that start early")
    compared = tools.measurer.compare_called([usual, *others], specs, "", None)
    kept = USUAL
    for name in faster(compared):
        why = _wrong(plan, sources, ways[name], timer) or _differs(usual, subjects[name], specs, timer)
        if why is None:
            kept = name
            break
        _log.warning("kernels of %s that start early are not used: %s", plan.name, why)
    if timer.store is not None and not timer.cancelled():
        timer.store.put(key, {"kept": kept})
    return ways[kept]


def early_sources(plan: RegionPlan, sources: Sources, form: Form = "loading") -> Sources:
    """With every kernel launched early that comes right after another in the plan. The first one is not, and none
    after a kernel of PyTorch's."""
    given = {live_in.value for live_in in plan.region.live_ins}
    weights: dict[str, set[str]] = {}
    steps = [step for step in plan.steps if isinstance(step, KernelStep) or not _is_free(step, plan)]
    after: dict[str, bool] = {}
    before: dict[str, bool] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, KernelStep):
            continue
        name = step.kernel.name  # which several steps may have
        weights[name] = {tensor for tensor, value in step.unit.inputs.items() if value in given}
        ends = [
            _generated(steps[at], sources, end) if 0 <= at < len(steps) else False
            for at, end in ((number - 1, -1), (number + 1, 0))
        ]
        own = [_generated(step, sources, end) for end in (0, -1)]
        after[name] = after.get(name, True) and ends[0] and own[0]
        before[name] = before.get(name, False) or (ends[1] and own[1])
    changed = {
        name: overlapped(sources[name], after=after[name], before=before[name], form=form, weights=weights[name])
        for name in after
    }
    if not any(kernel.early for source in changed.values() for kernel in source.kernels):
        return sources
    return {**sources, **changed}


def faster(compared: Compared) -> list[str]:
    """What is faster than one kernel after the other on the device or as called, and on neither clock slower, beyond
    what measuring can tell; the fastest on the device first."""
    found: dict[str, float] = {}
    for name, early in compared.device.items():
        called, usual = compared.called.get(name), (compared.device.get(USUAL), compared.called.get(USUAL))
        pairs = [(usual[0], early, DRIFT), (usual[1], called, CALLED_DRIFT)]
        gains = [
            gain(one, other, drift)
            for one, other, drift in pairs
            if isinstance(one, Summary) and isinstance(other, Summary)
        ]
        if name != USUAL and isinstance(early, Summary) and len(gains) == 2 and max(gains) > 1 and min(gains) >= 1:
            found[name] = early.median_us
    return sorted(found, key=lambda name: found[name])


def _is_free(step: PlainCalls, plan: RegionPlan) -> bool:
    """Do its calls launch nothing?"""
    return not launches(step.calls, plan.region.values)


def _generated(step: KernelStep | PlainCalls, sources: Sources, end: int) -> bool:
    """Is the first (0) or the last (-1) that a step launches a kernel of ours?"""
    return isinstance(step, KernelStep) and sources[step.kernel.name].kernels[end].library is None


def _wrong(plan: RegionPlan, sources: Sources, early: Sources, timer: RegionTimer) -> str | None:
    """What is wrong with a kernel that is launched early, if anything."""
    tester = timer.tools.tester
    for step in plan.steps:
        if not isinstance(step, KernelStep) or early[step.kernel.name] == sources[step.kernel.name]:
            continue
        source, program = early[step.kernel.name], step.unit.program
        text = text_checked(program, source, [scheduled(kernel) for kernel in step.kernels])
        if not text.passed:
            return f"the text of {source.name}: {text.reason}"
        tested = tested_at_sizes(tester, source, program)
        if not tested.passed:
            return f"{source.name}: {tested.reason}"
        known = step.verdict.same_bits
        if known is not None and known.holds and not (bits := same_bits(step.unit, source, tested)).holds:
            return f"{source.name}: {bits.why}"
    return None


def _differs(usual: Subject, early: Subject, specs: tuple[InputSpec, ...], timer: RegionTimer) -> str | None:
    """Do both give the same, one kernel after the other and early?"""
    measurer = timer.tools.measurer
    assert measurer is not None
    agreed = measurer.agree(replace(early, name="mugraph"), usual, specs)
    passed = getattr(agreed, "passed", False)
    return None if passed else getattr(agreed, "reason", "it differs from the kernels one after the other")

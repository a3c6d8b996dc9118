"""How a plan's kernels are launched: which start while the kernel before them ends (codegen/early.py), and which are
one launch, side by side (one_launch.py) or as a kernel that combines its own sums (last_blocks.py). Measured, on a
device that can.

The plan is timed each way, on the device and as it is called. The fastest that is faster on one of the clocks and
slower on none is kept, once its text and its results have passed the tests that any kernel has to pass. Where nothing
is measured each kernel is launched after the one before it: what is gained otherwise is a matter of microseconds, which
no estimate tells.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field, replace

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
from mugraph.solve.code import code_of
from mugraph.solve.last_blocks import last_blocks
from mugraph.solve.launch_verdict import verified_as_one
from mugraph.solve.one_launch import one_launch, with_verdicts
from mugraph.solve.timing import RegionTimer
from mugraph.store.keys import code_digest
from mugraph.targets import Target
from mugraph.tune.measure import Compared, Refused
from mugraph.tune.messages import DIFFERS, InputSpec, Subject
from mugraph.tune.statistics import CALLED_DRIFT, DRIFT, Summary, gain
from mugraph.verification.verdict import Verdict

_log = logging.getLogger("mugraph.solve")
Sources = Mapping[str, KernelSource]
USUAL, BESIDE, COMBINED = "one after the other", "side by side", "combined in the same launch"
FORMS: tuple[Form, ...] = ("loading", "asking")
"""That are tried: what kernels do before they wait."""


@dataclass(frozen=True)
class Way:
    """To launch a plan's kernels. made_of: as of Written"""

    plan: RegionPlan
    sources: Sources
    made_of: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict[str, tuple[Verdict, ...]])


def overlapping(
    plan: RegionPlan, sources: Sources, timer: RegionTimer, *, early: bool = True
) -> Generator[Event, None, tuple[RegionPlan, Sources]]:
    """The plan and its kernels, as they are given or as the same is launched fastest. early: also with kernels that
    start while the one before them ends"""
    usual = Way(plan, sources)
    kept = yield from _fastest(usual, timer, early=early)
    return kept.plan, kept.sources


def ways_of(usual: Way, target: Target, *, early: bool) -> dict[str, Way]:
    """How the plan's kernels may be launched, the usual way first."""
    beside = one_launch(usual.plan, usual.sources, target)
    starts = {USUAL: usual}
    for number, one in enumerate(beside):
        starts[f"{BESIDE} ({number + 1})" if number else BESIDE] = Way(one.plan, one.sources, one.made_of)
    for number, one in enumerate(last_blocks(usual.plan, usual.sources, target)):
        starts[f"{COMBINED} ({number + 1})" if number else COMBINED] = Way(one.plan, one.sources, one.made_of)
    found = dict(starts)
    for name, way in [(name, way) for name, way in starts.items() if name in (USUAL, BESIDE, COMBINED)]:
        for form in FORMS if early and target.launches_early else ():
            sources = early_sources(way.plan, way.sources, form)
            if all(sources != other.sources for other in found.values()):
                found[form if name == USUAL else f"{name}, {form}"] = replace(way, sources=sources)
    return found


def _fastest(usual: Way, timer: RegionTimer, *, early: bool) -> Generator[Event, None, Way]:
    plan, tools, specs = usual.plan, timer.tools, timer.peers.specs(usual.plan)
    if tools.measurer is None or plan.region.dynamic is not None or specs is None:
        return usual
    ways = ways_of(usual, tools.target, early=early)
    if len(ways) == 1:
        return usual
    texts: dict[str, str] = {}
    for name, way in ways.items():
        try:
            texts[name] = timer.module_text(way.plan, way.sources)
        except Rejected:
            if name == USUAL:  # which is said where the plan is timed
                return usual
    tf32 = settings_of(plan.region.calls)
    subjects = {name: Subject(name, text, on_tensors(plan), tf32=tf32) for name, text in texts.items()}
    first, *others = subjects.values()
    if not others:
        return usual
    key = timing_key(first, specs, timer.device, (code_digest(), *(one.source for one in others)))
    known = timer.store.get(key) if timer.store is not None else None
    if known is not None and known.get("kept") == USUAL:
        return usual
    if known is not None and known.get("kept") in subjects:
        way = ways[str(known["kept"])]
        if not way.made_of:
            return way
        right = _right(usual, way, timer)  # the verdict on kernels that are one launch is that of this run
        return right if isinstance(right, Way) else usual
    if tools.pool is not None:
        for one in others:
            tools.pool.compile([*kernels_of_module(one.source, ways[one.name].sources.values())])
    yield from timer.peers.quiet()
    yield Working(timer.number, f"measuring {plan.name} with kernels {_said(subjects)}")
    compared = tools.measurer.compare_called([first, *others], specs, "", None)
    kept, found = USUAL, usual
    for name in faster(compared):
        right = _right(usual, ways[name], timer)
        why = right if isinstance(right, str) else _differs(subjects[name], plan, specs, timer)
        if why is None and isinstance(right, Way):
            kept, found = name, right
            break
        _log.warning("kernels of %s, %s, are not used: %s", plan.name, name, why)
    if timer.store is not None and not timer.cancelled():
        timer.store.put(key, {"kept": kept})
    return found


def _said(names: Collection[str]) -> str:
    words = [how for how in (BESIDE, COMBINED) if any(name.startswith(how) for name in names)]
    words += ["that start early"] if any(name.endswith(FORMS) for name in names) else []
    return " and ".join(words)


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


def _right(usual: Way, way: Way, timer: RegionTimer) -> Way | str:
    """The way with the verdicts on what is new in it; or what is wrong with it."""
    tools = timer.tools
    verdicts: dict[str, Verdict] = {}
    for step in way.plan.steps:
        if not isinstance(step, KernelStep):
            continue
        name, source = step.kernel.name, way.sources[step.kernel.name]
        if name in way.made_of:
            found = verified_as_one(step, source, way.made_of[name], tools.tester, tools.target)
            if not found.passed:
                return f"{name}: {found.reason}"
            verdicts[name] = found
        elif source != usual.sources[name] and (wrong := _wrong(step, source, timer)) is not None:
            return wrong
    return replace(way, plan=with_verdicts(way.plan, verdicts))


def _wrong(step: KernelStep, source: KernelSource, timer: RegionTimer) -> str | None:
    """What is wrong with a kernel that is launched early, if anything."""
    program = step.unit.program
    text = text_checked(program, source, [scheduled(kernel) for kernel in step.kernels])
    if not text.passed:
        return f"the text of {source.name}: {text.reason}"
    tested = tested_at_sizes(timer.tools.tester, source, program)
    if not tested.passed:
        return f"{source.name}: {tested.reason}"
    known = step.verdict.same_bits
    if known is not None and known.holds and not (bits := same_bits(step.unit, source, tested)).holds:
        return f"{source.name}: {bits.why}"
    return None


def _differs(way: Subject, plan: RegionPlan, specs: tuple[InputSpec, ...], timer: RegionTimer) -> str | None:
    """Why what kernels launched so give is not what the code gives. Kernels are no reference: what is compared is
    computed in double precision too, which only the code can."""
    measurer = timer.tools.measurer
    assert measurer is not None
    try:
        agreed = measurer.agree(replace(way, name="mugraph"), code_of(plan.region, plan), specs)
    except Rejected as error:
        return str(error)
    if isinstance(agreed, Refused):
        return agreed.reason
    return None if agreed.passed else f"{DIFFERS} by {agreed.error:.2e}, more than {agreed.limit:.2e}"

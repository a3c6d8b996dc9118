"""Kernels of a plan that do not depend on one another as one launch, side by side (codegen/one_grid.py): what could be,
written; whether it is right, launch_verdict.py says.

Steps of one kernel each become one step, whose program is all of theirs together. What one step launches in several
kernels may run side by side, too. A launch has one number of warps, and one of stages: the kernels are written again
with those that one of them has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.codegen.last_block import meetings_of, with_last_blocks
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.one_grid import bytes_of, with_one_grids
from mugraph.codegen.tile.meeting import Meeting
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import numbered, take
from mugraph.ir.program import TensorProgram
from mugraph.optimizer.nodes import node_of, scheduled
from mugraph.plans.beside import Step, Together, beside
from mugraph.plans.kernel_graph import kernel_graph
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.sizes.text import Writer
from mugraph.targets import Target
from mugraph.units.united import NotOne, united
from mugraph.verification.verdict import Verdict

Sources = Mapping[str, KernelSource]
Kernels = Sequence[tuple[BlockGraph, Schedule]]
NOT_YET = Verdict(False, "it is not verified yet.")

_LONGEST_US = 20.0
"""Of the memory that a kernel goes through, at the device's speed: what there is to gain is a few microseconds."""


@dataclass(frozen=True)
class Written:
    """A plan in which some kernels are one launch, and its kernels. made_of: its new steps, by the names of their first
    kernels -> the verdicts on the steps that each was made of"""

    plan: RegionPlan
    sources: Sources
    made_of: Mapping[str, tuple[Verdict, ...]]


def one_launch(plan: RegionPlan, sources: Sources, target: Target) -> list[Written]:
    """The plan with kernels side by side, for each number of warps that its largest groups may have: none where no
    kernels can be."""
    if plan.region.dynamic is not None:
        return []
    found: list[Written] = []
    for number in range(2):
        written = _written(plan, sources, target, number)
        if written is not None and written.sources not in [one.sources for one in found]:
            found.append(written)
    return found


def write(step: KernelStep, target: Target | None) -> Writer:
    """What writes kernels as `lower_kernels` does, with those as one launch that are in the step."""

    def lowered(kernels: Kernels, outputs: Collection[str], program: TensorProgram) -> KernelSource:
        named = {block.name: (block, schedule) for block, schedule in kernels}
        meetings: dict[str, Meeting] = {}
        for first, second in step.combined:
            meetings |= meetings_of(named[first], named[second])
        source = lower_kernels(kernels, target=target, outputs=outputs, program=program, meetings=meetings)
        if step.combined:
            return with_last_blocks(source, kernels, step.combined, outputs)
        return with_one_grids(source, step.one_launch, outputs)

    return lowered


def _written(plan: RegionPlan, sources: Sources, target: Target, choice: int) -> Written | None:
    """choice: which of the numbers of warps that the kernels of a launch have"""
    taken = [kernel.name for step in plan.steps if isinstance(step, KernelStep) for kernel in step.kernels]
    new: dict[str, KernelSource] = {}
    old: dict[str, tuple[Verdict, ...]] = {}
    steps: list[Step] = []
    for part in beside(plan.region, plan.steps, lambda step: _may_be(step, sources, target)):
        made: tuple[KernelStep, KernelSource] | None = None
        of = part.steps if isinstance(part, Together) else [part] if isinstance(part, KernelStep) else []
        if isinstance(part, Together):
            made = _as_one(part.steps, taken, target, choice)
        elif isinstance(part, KernelStep):
            made = _inside(part, sources[part.kernel.name], target, choice)
        if made is not None:
            step, source = made
            new[source.name] = source
            old[source.name] = tuple(one.verdict for one in of)
            steps.append(step)
        else:
            steps += part.steps if isinstance(part, Together) else [part]
    if not new:
        return None
    whole = with_steps(plan, steps)
    gone = _names(plan) - _names(whole)
    kept = {name: source for name, source in sources.items() if name not in gone}
    return Written(whole, {**kept, **new}, old)


def _names(plan: RegionPlan) -> set[str]:
    """By which its steps have their kernels."""
    return {step.kernel.name for step in plan.steps if isinstance(step, KernelStep)}


def with_steps(plan: RegionPlan, steps: Sequence[Step]) -> RegionPlan:
    return replace(plan, steps=tuple(steps), mugraph=kernel_graph(plan.name, plan.region, steps))


def with_verdicts(plan: RegionPlan, verdicts: Mapping[str, Verdict]) -> RegionPlan:
    """verdicts: of steps, by the names of their first kernels"""
    steps = [
        replace(step, verdict=verdicts[step.kernel.name])
        if isinstance(step, KernelStep) and step.kernel.name in verdicts
        else step
        for step in plan.steps
    ]
    return replace(plan, steps=tuple(steps))


def _may_be(step: KernelStep, sources: Sources, target: Target) -> bool:
    """Is it one small kernel of ours?"""
    source = sources[step.kernel.name]
    (block, _), *others = map(scheduled, step.kernels)
    own_axes = not set(block.sizes) <= set(step.unit.program.sizes)
    return (
        not others and not step.combined and not own_axes and not step.unit.program.least and _is_small(source, target)
    )


def _is_small(kernel: KernelSource, target: Target) -> bool:
    """Is it so short that its start and its end count?"""
    if kernel.library is not None or kernel.parts or kernel.joined or kernel.least or kernel.early:
        return False
    return bytes_of(kernel) <= _LONGEST_US * target.bandwidth


def _as_one(
    steps: Sequence[KernelStep], taken: Sequence[str], target: Target, choice: int
) -> tuple[KernelStep, KernelSource] | None:
    """taken: names of all kernels of the plan"""
    names = [step.kernel.name for step in steps]
    others = {name for name in taken if taken.count(name) > names.count(name)}
    used = {*others, *taken} - ({*names} - others)
    own = [take(numbered(name), used) for name in names]
    try:
        unit, renamings = united([step.unit for step in steps], own[0])
        kernels: list[tuple[BlockGraph, Schedule]] = []
        for step, names_of, name in zip(steps, renamings, own, strict=True):
            block, schedule = scheduled(step.kernel)
            kernels.append((replace(names_of.block(block), name=name), names_of.schedule(schedule)))
        source, kernels = _lowered(kernels, [own], unit.program, target, choice)
    except (Rejected, NotOne):
        return None
    first, *then = (node_of(*kernel) for kernel in kernels)
    return KernelStep(unit, first, NOT_YET, tuple(then), (tuple(own),)), source


def _inside(
    step: KernelStep, source: KernelSource, target: Target, choice: int
) -> tuple[KernelStep, KernelSource] | None:
    """The kernels of one step that follow one another and do not depend on one another."""
    if step.combined or not source.parts or source.least or any(part.joined for part in source.parts):
        return None
    groups = [tuple(part.name for part in group) for group in _runs(source.parts, target) if len(group) > 1]
    if not groups:
        return None
    try:
        made, kernels = _lowered([*map(scheduled, step.kernels)], groups, step.unit.program, target, choice)
    except Rejected:
        return None
    first, *then = (node_of(*kernel) for kernel in kernels)
    return replace(step, kernel=first, then=tuple(then), verdict=NOT_YET, one_launch=tuple(groups)), made


def _runs(parts: Sequence[KernelSource], target: Target) -> Iterator[list[KernelSource]]:
    run: list[KernelSource] = []
    for part in parts:
        made = {tensor.name for one in run for tensor in one.outputs}
        if not _is_small(part, target) or not made.isdisjoint(tensor.name for tensor in part.inputs):
            yield run
            run = []
        if _is_small(part, target):
            run.append(part)
    yield run


def _lowered(
    kernels: Kernels, groups: Sequence[Sequence[str]], program: TensorProgram, target: Target, choice: int
) -> tuple[KernelSource, list[tuple[BlockGraph, Schedule]]]:
    """With one number of warps and of stages in each group: as many stages as fit. Raises Rejected."""
    chosen = list[tuple[BlockGraph, Schedule]](kernels)
    outputs = [tensor.name for tensor in program.outputs.values()]
    for group in groups:
        at = [number for number, (block, _) in enumerate(kernels) if block.name in group]
        own = [kernels[number][1] for number in at]
        warps = sorted({schedule.num_warps for schedule in own}, key=lambda warps: -_blocks(kernels, at, warps))
        warps_of = warps[min(choice, len(warps) - 1)]
        for stages in sorted({schedule.num_stages for schedule in own}, reverse=True):
            tried = chosen.copy()
            for number in at:
                block, schedule = kernels[number]
                tried[number] = block, replace(schedule, num_warps=warps_of, num_stages=stages)
            try:
                lower_kernels(tried, target=target, outputs=outputs, program=program)
            except Rejected:
                continue
            chosen = tried
            break
        else:
            raise Rejected("the kernels do not fit with one number of warps and of stages.")
    source = lower_kernels(chosen, target=target, outputs=outputs, program=program)
    return with_one_grids(source, groups, outputs), chosen


def _blocks(kernels: Kernels, at: Sequence[int], warps: int) -> int:
    """Of those of the kernels that have so many warps."""
    return sum(kernels[n][1].blocks(kernels[n][0].sizes) for n in at if kernels[n][1].num_warps == warps)

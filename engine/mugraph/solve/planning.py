"""A region's plan: kernels for the search units that have one, PyTorch for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mugraph.events import Solution
from mugraph.ir.calls import Call, operands
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.plans.kernel_graph import kernel_graph
from mugraph.plans.numbers import are_other_in_pytorch
from mugraph.plans.plan import KernelStep, RegionPlan, joined
from mugraph.plans.tf32 import asking
from mugraph.units.biases import with_biases_back
from mugraph.units.layouts import plain_calls_of, with_usual_layouts
from mugraph.units.written_last import reading_usual, with_copies, written_by_kernels

Step = KernelStep | PlainCalls


def planned(
    name: str,
    region: Region,
    parts: Sequence[Part],
    used: Mapping[int, Solution],
    without: frozenset[str] = frozenset(),
) -> RegionPlan | None:
    """used: id of a search unit -> its kernel; without: optimisations that are left out. None where no part of the
    region has a kernel, or a number that varies is given to what PyTorch computes."""
    steps = steps_of(region, parts, used)
    if region.relaid is None:
        region = with_copies(region, [step.calls for step in steps if isinstance(step, PlainCalls)])
    if not any(isinstance(step, KernelStep) for step in steps):
        return None
    if any(are_other_in_pytorch(region, step.calls) for step in steps if isinstance(step, PlainCalls)):
        return None
    if "threads" in without:
        steps = tuple(_unfused(step) if isinstance(step, KernelStep) else step for step in steps)
    return RegionPlan(name, asking(region, steps), steps, kernel_graph(name, region, steps), without=without)


def _unfused(step: KernelStep) -> KernelStep:
    """Each operator by itself."""
    kernel, *then = (replace(one, threads=()) if isinstance(one, GraphKernel) else one for one in step.kernels)
    return replace(step, kernel=kernel, then=tuple(then))


def steps_of(region: Region, parts: Sequence[Part], used: Mapping[int, Solution]) -> tuple[Step, ...]:
    """As `planned` takes them: kernels, and the calls that PyTorch makes beside them."""
    steps: list[Step] = []
    for part in parts:
        solution = used.get(id(part))
        if isinstance(part, SearchUnit) and solution is not None:
            steps += [PlainCalls(part.views)] if part.views else []
            verdict = solution.verdict.of_sizes(_called(part))
            steps.append(KernelStep(part, solution.kernel, verdict, solution.then))
        else:
            steps.append(PlainCalls(part.calls))
    return tuple(joined(complete(region.as_made, _as_recorded(region, steps))))


def _called(unit: SearchUnit) -> dict[str, str]:
    """Axis -> what it is of the sizes that the user has named."""
    return {axis: of.text({name: name for name in of.sizes}) for axis, of in unit.varying.items()}


def _as_recorded(region: Region, steps: Sequence[Step]) -> list[Step]:
    """Where no kernel adds the bias of a convolution, PyTorch's call does; where none reads its result channels last,
    it is in the usual order, and so is what other calls read. Where the whole region is channels last, whatever makes a
    value leaves it so."""
    if region.relaid is not None:
        plain = iter(with_biases_back(region.as_made, [step.calls for step in steps if isinstance(step, PlainCalls)]))
        found = [PlainCalls(next(plain)) if isinstance(step, PlainCalls) else step for step in steps]
        return [step for step in found if not isinstance(step, PlainCalls) or step.calls]
    plain = [plain_calls_of(region, step if isinstance(step, PlainCalls) else step.unit) for step in steps]
    kernels = [step for step, calls in zip(steps, plain, strict=True) if isinstance(step, KernelStep) and not calls]
    kernels_read = {value for step in kernels for value in step.unit.inputs.values()}
    calls = [tuple(of_step) for of_step in plain if of_step]
    back = with_biases_back(region, with_usual_layouts(region, calls, kernels_read))
    made = iter(reading_usual(region, back, written_by_kernels(region, calls)))
    found = [_made_so(step, next(made)) if of_step else step for step, of_step in zip(steps, plain, strict=True)]
    return [step for step in found if not isinstance(step, PlainCalls) or step.calls]


def _made_so(step: Step, calls: tuple[Call, ...]) -> Step:
    """The step, where it is a kernel that makes just these calls; else the calls."""
    return step if isinstance(step, KernelStep) and calls == tuple(step.unit.calls) else PlainCalls(calls)


def complete(region: Region, steps: Sequence[Step]) -> list[Step]:
    """With the calls that make what later ones read, and no step makes: numbers that search units know, as of a mask,
    and whose calls are in none of them."""
    makers = {value: call for call in region.calls for value in call.outputs}
    known = {live.value for live in region.live_ins}

    def before(call: Call) -> Iterator[Call]:
        for value in operands(call):
            if value not in known and value in makers:
                yield from before(makers[value])
                known.update(makers[value].outputs)
                yield makers[value]

    found: list[Step] = []
    for step in steps:
        if isinstance(step, KernelStep):
            known.update(step.unit.outputs.values())
            found.append(step)
            continue
        calls: list[Call] = []
        for call in step.calls:
            calls += [*before(call), call]
            known.update(call.outputs)
        found.append(PlainCalls(tuple(calls)))
    return found

"""What a region writes to: live-ins that hold something else after it, as a cache does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.codegen.over_inputs import writes_over
from mugraph.ir.calls import STORES, is_inplace, operands
from mugraph.ir.dtypes import INTEGERS
from mugraph.ir.region import Region
from mugraph.plans.plan import KernelStep, RegionPlan


def written(region: Region) -> tuple[int, ...]:
    """Positions of the live-ins that calls of the region write to."""
    return tuple(at for at, live_in in enumerate(region.live_ins) if live_in.value in _targets(region).values())


def places_written(region: Region) -> frozenset[int]:
    """Integers by which they are addressed. Where two are one place, it is not said which is written last."""
    return frozenset(
        value
        for call in region.calls
        if call.outputs[0] in _targets(region)
        for value in operands(call)[1:]
        if region.values[value].dtype in INTEGERS
    )


def _targets(region: Region) -> Mapping[int, int]:
    """What calls write to, by their results, as it was before all of them."""
    found: dict[int, int] = {}
    same: dict[int, int] = {}
    for call in region.calls:
        if call.target == "Tensor.data.__get__":  # the same tensor, but for its version
            same[call.outputs[0]] = operands(call)[0]
        if call.outputs and (call.target == STORES or is_inplace(call)):
            first = same.get(operands(call)[0], operands(call)[0])
            found[call.outputs[0]] = found.get(first, first)
    return found


def apart_checks(plan: RegionPlan, parameters: Sequence[str]) -> list[str]:
    """What is asked of the memory of tensors that are written to last."""
    named = [*zip(plan.region.live_ins, parameters, strict=True)]
    stored = [name for live_in, name in named if live_in.value in plan.region.stored]
    others = [name for live_in, name in named if live_in.value not in plan.region.stored]
    return [f"_lie_apart({', '.join([str(len(stored)), *stored, *others])})"] if stored else []


def count_lines(plan: RegionPlan, step: KernelStep, names: Mapping[int, str]) -> list[str]:
    """Lines that tell autograd of what a kernel has written over."""
    own = {step.unit.inputs[read] for read in step.over.values()}
    return [f"_count_write({names[one.stored]})" for one in writes_over(plan) if one.counted and one.stored in own]

"""How large random inputs should be for a region's values to stay within the range of their types."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.calls import operands
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit
from mugraph.plans.plan import KernelStep, RegionPlan


def input_scale(program: TensorProgram, name: str) -> float:
    """Standard deviation for the input tensor `name` that keeps each contraction's result near 1: sums of thousands of
    products of standard normal values overflow half precision in a chain of products."""
    tensor = program.tensor(name)
    contracted = {axis for op in program.ops if op.kind.contracts for axis in op.over}
    scale = 1.0
    for axis in contracted & set(tensor.axes):
        scale *= program.sizes[axis] ** -0.25
    return scale


def input_scales(plan: RegionPlan) -> dict[int, float]:
    """Value number of a live-in -> the smallest scale that any step of the plan needs. A matrix that only PyTorch's own
    code reads is scaled by its second-to-last or last axis, whichever is longer: one of them is contracted."""
    return unit_scales(plan.region, [step.unit for step in plan.steps if isinstance(step, KernelStep)])


def unit_scales(region: Region, units: Iterable[SearchUnit]) -> dict[int, float]:
    """As `input_scales`, for these search units of the region, which have no plan yet."""
    scales: dict[int, float] = {}
    for unit in units:
        for name, value in unit.inputs.items():
            scales[value] = min(scales.get(value, 1.0), input_scale(unit.program, name))
        for call in reversed(unit.views):  # a tensor needs the scale of its parts
            for value in operands(call):
                scales[value] = min(scales.get(value, 1.0), scales[call.outputs[0]])
    for live_in in region.live_ins:
        shape = region.values[live_in.value].shape
        if live_in.value not in scales and len(shape) > 1:
            scales[live_in.value] = max(1, *shape[-2:]) ** -0.5
    return scales

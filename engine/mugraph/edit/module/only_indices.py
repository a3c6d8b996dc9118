"""What of a region only PyTorch's own calls read, as indices."""

from __future__ import annotations

from mugraph.ir.calls import operands
from mugraph.plans.plan import KernelStep, RegionPlan


def only_indices(plan: RegionPlan) -> frozenset[int]:
    """Values that PyTorch's own calls alone read, and these as indices: no kernel asks where they lie. (Of the places
    that `torch.where` gives for two dimensions, those of the second begin in the middle of a tensor.)"""
    plain = [made for step in plan.steps if not isinstance(step, KernelStep) for made in step.calls]
    used = {value for made in plain if made.target == "Tensor.__getitem__" for value in operands(made)[1:]}
    for step in plan.steps:
        if isinstance(step, KernelStep):
            used -= {*step.unit.inputs.values(), *(value for made in step.unit.views for value in operands(made))}
        else:
            for made in step.calls:
                used -= {*operands(made)[: 1 if made.target == "Tensor.__getitem__" else None]}
    return frozenset(used - {live_out.value for live_out in plan.region.live_outs})

"""Regions whose size is known at run time only: they are tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.calls import TensorInfo
from mugraph.plans.plan import RegionPlan
from mugraph.units.ranged import values_at

KNOWN_TO_FIT = '''\
def _known_to_fit(size: tuple[Any, int, int], *shapes: tuple[torch.Tensor, tuple[Any, ...]]) -> bool:
    """Whether a program that is exported for many sizes has only such as fit: a comparison then leaves none out."""
    known, (value, least, largest) = torch.fx.experimental.symbolic_shapes.statically_known_true, size
    if not (known(value >= least) and known(value <= largest)):
        return False
    return all([known(had == made) for tensor, shape in shapes for had, made in zip(tensor.shape, shape)])
'''


def cases_of(plan: RegionPlan) -> Mapping[str, Mapping[int, TensorInfo]]:
    """Name of a case -> the shapes of the region's values in it. The case of the largest size has the region's own
    name."""
    region = plan.region
    cases: dict[str, Mapping[int, TensorInfo]] = {plan.name: region.values}
    if region.dynamic is not None:
        for size in region.dynamic.range.samples:
            name = f"{plan.name}, {region.dynamic.range.name} = {size}"
            cases[name] = values_at(region, region.dynamic, size)
    return cases

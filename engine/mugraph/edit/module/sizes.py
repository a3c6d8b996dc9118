"""Regions whose size is known at run time only: they are tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.edit.module.wrapper_sizes import numbers_at
from mugraph.ir.calls import TensorInfo
from mugraph.plans.plan import RegionPlan
from mugraph.units.ranged import values_at

KNOWN_TO_FIT = '''\
def _known_to_fit(sizes: list[tuple[Any, int, int]], *shapes: tuple[torch.Tensor, tuple[Any, ...]]) -> bool:
    """Whether a program that is exported for many sizes has only such as fit: a comparison then leaves none out."""
    known = torch.fx.experimental.symbolic_shapes.statically_known_true
    if not all([known(value >= least) and known(value <= largest) for value, least, largest in sizes]):
        return False
    return all([known(had == made) for tensor, shape in shapes for had, made in zip(tensor.shape, shape)])
'''


def cases_of(plan: RegionPlan) -> Mapping[str, tuple[Mapping[int, TensorInfo], Sequence[int]]]:
    """Name of a case -> the shapes of the region's values in it, and the whole numbers that its functions take. The
    case of the largest size has the region's own name."""
    region = plan.region
    cases: dict[str, tuple[Mapping[int, TensorInfo], Sequence[int]]] = {plan.name: (region.values, ())}
    if region.dynamic is not None:
        for point in region.dynamic.points:
            sizes = ", ".join(f"{name} = {size}" for name, size in sorted(point.items()))
            cases[f"{plan.name}, {sizes}"] = values_at(region, region.dynamic, point), numbers_at(region, point)
    return cases

"""Two plans of one region, whose convolutions that PyTorch runs lie differently in memory: the faster one is kept.

Which one is faster depends on the library's kernels. Where nothing is measured, the one that is expected to be.
"""

from __future__ import annotations

from mugraph.events import RegionResult
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.units.biases import with_biases_apart, without_biases
from mugraph.units.layouts import FASTER, Ranks, turnable


def other_layouts(region: Region) -> Ranks | None:
    """The other choice than the one that is expected to be faster; None where there is nothing to choose. Convolutions
    of which a search unit may have a kernel count as well: one way to divide the region leaves them to PyTorch."""
    windowed = [call for call in region.calls if canonical(call.target) in WINDOW_DIMS]
    left = {call.outputs[0] for call in windowed if len(call.outputs) == 1}
    apart = with_biases_apart(region, left)
    alone = without_biases(region, apart)
    ranks = {one.rank for one in turnable(apart, left={alone.get(value, value) for value in left})}
    return ranks - set(FASTER) if ranks else None


def is_settled(first: RegionResult, other: Ranks) -> bool:
    """Whether the other choice need not be measured: the order that was seen to be faster is offered, and the other
    turns nothing. (The library may have no kernel for the tensor cores in one of the orders; then the results differ,
    and the first is not offered.)"""
    return first.status == "improved" and not other


def faster(one: RegionResult, other: RegionResult) -> RegionResult:
    """Of two measured results. The first where neither is offered, or both take as long."""
    return max((one, other), key=_gain)


def _gain(result: RegionResult) -> tuple[bool, float]:
    return result.status == "improved", result.timing.speedup or 0.0

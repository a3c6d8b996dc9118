"""Two plans of one region, whose convolutions that PyTorch runs lie differently in memory: the faster one is kept.

Which one is faster depends on the library's kernels. Where nothing is measured, the one that is expected to be.
"""

from __future__ import annotations

from mugraph.events import RegionResult
from mugraph.ir.region import Region
from mugraph.units.biases import with_biases_apart
from mugraph.units.layouts import FASTER, Ranks, turnable


def other_layouts(region: Region) -> Ranks | None:
    """The other choice than the one that is expected to be faster; None where there is nothing to choose."""
    ranks = {one.rank for one in turnable(with_biases_apart(region))}
    return ranks - set(FASTER) if ranks else None


def faster(one: RegionResult, other: RegionResult) -> RegionResult:
    """Of two measured results. The first where neither is offered, or both take as long."""
    return max((one, other), key=_gain)


def _gain(result: RegionResult) -> tuple[bool, float]:
    return result.status == "improved", result.timing.speedup or 0.0

"""Numbers that vary, in calls that PyTorch makes beside a region's kernels: there they are tensors."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.calls import Call, Ref, operands
from mugraph.ir.region import Region


def are_other_in_pytorch(region: Region, calls: Iterable[Call]) -> bool:
    """Whether one of the calls would not do with the tensor what it does with the number: PyTorch rounds the tensor to
    a narrower type that it is computed with, and reads its value back from the GPU where it has to be a number."""
    for call in calls:
        read = operands(call)
        if region.numbers.isdisjoint(read):
            continue
        if any(region.values[value].dtype != "f32" for value in read if value in region.values):
            return True
        if any(isinstance(given, Ref) and given.value in region.numbers for given in call.kwargs.values()):
            return True
    return False

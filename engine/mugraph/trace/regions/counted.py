"""Values that are counted (torch.arange) and what is made of them alone: rules say what they are at every size, where
looking at their numbers says it at one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, TensorInfo, operands
from mugraph.ops.algebra.registry import canonical, entry_for

_COUNTS = "torch.arange"


def without_counted(calls: Sequence[Call], values: Mapping[int, TensorInfo]) -> dict[int, TensorInfo]:
    """The values, of which none that rules make of counted ones is said to be a constant with a triangle in it. What
    has no rule, and what is made of it, stays a constant."""
    counted: set[int] = set()
    for call in calls:
        read = operands(call)
        known = {value for value in read if values[value].triangle is not None}
        makes = canonical(call.target) == _COUNTS or (counted.intersection(read) and counted | known >= set(read))
        if makes and entry_for(call.target) is not None:
            counted.update(call.outputs)
    return {value: replace(info, triangle=None) if value in counted else info for value, info in values.items()}

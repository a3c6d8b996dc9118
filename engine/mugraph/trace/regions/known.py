"""Which constants of a region are constants of its own: what is made of a tensor that it finds is none, unless that
tensor's numbers are looked at again where the region runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, TensorInfo, operands
from mugraph.trace.pytorch.targets import last_part
from mugraph.trace.run.constants import ALIKE, SHAPED


def without_found(
    calls: Sequence[Call], values: Mapping[int, TensorInfo], found: Collection[int]
) -> dict[int, TensorInfo]:
    """The values, of which none that is computed from a live-in is said to be a constant, unless that live-in is one.

    A cache that a module made of zeros holds something else later, and so does a slice of it.

    found: the live-ins
    """
    unknown = {value for value in found if values[value].triangle is None}
    for call in calls:
        name, read = last_part(call.target), operands(call)
        numbers = () if name in SHAPED else read[:1] if name in ALIKE else read
        if unknown.intersection(numbers):
            unknown.update(call.outputs)
    return {value: replace(info, triangle=None) if value in unknown else info for value, info in values.items()}

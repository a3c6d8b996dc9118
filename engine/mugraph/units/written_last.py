"""What kernels write channels last: the operands of convolutions that PyTorch runs so.

The call that turns such an operand finds it turned, and copies nothing. torch.compile does the same; in the usual order
each image between two convolutions would be read and written once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, Ref, operands
from mugraph.ir.region import Part, Region, SearchUnit
from mugraph.units.layouts import (
    TARGET,
    Turned,
    as_recorded,
    in_usual_order,
    numbers_in,
    plain_calls,
    reading,
    turned_pairs,
)


def written_last(region: Region, parts: Sequence[Part], chosen: Collection[Turned]) -> frozenset[int]:
    """Operands of these convolutions that kernels make, and that nothing reads but kernels and convolutions that are
    turned; if each search unit of the region has a kernel."""
    copies = {one.number for one in chosen}
    plain = [call for part in parts for call in plain_calls(part)]
    read = {value for call in plain if copies.isdisjoint(call.outputs) for value in operands(call)}
    made = {value for part in parts if isinstance(part, SearchUnit) for value in part.outputs.values()}
    operand = {one.operand for one in chosen}
    return frozenset((operand & made) - read - {live.value for live in region.live_outs})


def written_by_kernels(region: Region, plain: Sequence[Sequence[Call]]) -> set[int]:
    """Values that kernels write channels last for convolutions that PyTorch runs. plain: what it runs, step by step"""
    every = [call for step in plain for call in step]
    lying = as_recorded(region.values, [usual for _, usual in turned_pairs(region, every)])[1]
    return lying - {value for call in every for value in call.outputs}


def reading_usual(region: Region, plain: Sequence[Sequence[Call]], written: Collection[int]) -> list[tuple[Call, ...]]:
    """The calls, of which those that read such a value read a copy in the usual order: all but those that turn it.

    written: as `written_by_kernels` gives them
    """
    every = [call for step in plain for call in step]
    numbers = (*numbers_in(region), *region.values, *(value for call in every for value in call.outputs))
    least = 1 + max(numbers, default=-1)
    copies = {value: least + at for at, value in enumerate(sorted(written))}
    made: set[int] = set()

    def calls(step: Sequence[Call]) -> Iterator[Call]:
        for call in step:
            if call.target == TARGET and "memory_format" in call.kwargs:
                yield call
                continue
            for value in sorted(copies.keys() & {*operands(call)} - made):
                made.add(value)
                yield Call(TARGET, (Ref(value),), {}, (copies[value],), call.range)
            yield reading(call, copies)

    return [tuple(calls(step)) for step in plain]


def with_copies(region: Region, plain: Sequence[Sequence[Call]]) -> Region:
    """The region with what is known of copies in the usual order, which its calls do not make."""
    copies = [call for step in plain for call in step if call.target == TARGET and call.outputs[0] not in region.values]
    made = {call.outputs[0]: in_usual_order(region.values[operands(call)[0]]) for call in copies}
    return replace(region, values={**region.values, **made}) if made else region

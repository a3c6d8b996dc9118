"""PyTorch's own attention of grouped queries, without copies of keys and values.

Where a group of heads shares keys and values, people repeat these for each head before the call, and PyTorch copies
them out. Its fused attention also takes them as they are (`enable_gqa`). So a call of which both are repeated is made
of what they are repeated from, if both calls are one tensor program, and if it is one that a fused kernel computes:
PyTorch's other way to compute it would copy them out as well (`can_use_flash_attention` in its sources says when).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.ir.calls import Argument, Call, Ref, TensorInfo, operands
from mugraph.ir.dtypes import NARROW
from mugraph.ir.region import Region
from mugraph.ir.transforms.renaming import key_of
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable
from mugraph.ops.algebra.registry import entry_for
from mugraph.trace.regions.value_names import value_names
from mugraph.units.biases import argument
from mugraph.units.growing import identifier_of
from mugraph.units.lower import Lowered, lower
from mugraph.units.region_graph import RegionGraph

_GROUPED = "enable_gqa"
_TENSORS = ("query", "key", "value")
_HEAD = 256
"""Elements of a head up to which PyTorch has a fused kernel."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """A call with keys and values as they are. written: as it was recorded, after the calls that repeat them for it
    alone"""

    call: Call
    written: tuple[Call, ...]


def with_grouped_heads(region: Region) -> Region:
    """The region without repeated keys and values where PyTorch needs none. What repeated them is left; nothing may
    read it. A region for a range of sizes stays as it is: its calls are written for each of them."""
    if region.dynamic is not None or not any(_names(call) for call in region.calls):
        return region
    graph = RegionGraph(region)
    return replace(region, calls=tuple(_grouped(call, region, graph) or call for call in region.calls))


def as_written(region: Region, plain: Sequence[Call]) -> tuple[list[Call], list[Grouped]]:
    """Calls that PyTorch runs as the user's code has them; and those that differ.

    region: as recorded
    """
    recorded = {call.outputs: call for call in region.calls if _names(call)}
    there = {value for call in plain for value in call.outputs}
    usual, found = list[Call](), list[Grouped]()
    for call in plain:
        own = recorded.get(call.outputs, call)
        if own == call:
            usual.append(call)
            continue
        repeats = [one for one in _between(own, call, region) if there.isdisjoint(one.outputs)]
        there |= {value for one in repeats for value in one.outputs}
        usual += [*repeats, own]
        found.append(Grouped(call, (*repeats, own)))
    return usual, found


def _between(own: Call, call: Call, region: Region) -> list[Call]:
    """Calls that make what the one reads of what the other reads, in order."""
    graph, todo, found = RegionGraph(region), [*operands(own)], set[int]()
    while todo:
        value = todo.pop()
        i = graph.producer.get(value)
        if value not in operands(call) and i is not None and i not in found:
            found.add(i)
            todo += operands(region.calls[i])
    return [region.calls[i] for i in sorted(found)]


def _grouped(call: Call, region: Region, graph: RegionGraph) -> Call | None:
    """The call of keys and values as they are; None where they are not repeated, or PyTorch would copy them."""
    given = {name: argument(call, at, name) for at, name in enumerate(_names(call))}
    if not given or not _is_fused(given, region):
        return None
    query, key, value = (given[name] for name in _TENSORS)
    if not isinstance(query, Ref) or not isinstance(key, Ref) or not isinstance(value, Ref):
        return None
    heads = region.values[query.value].shape[1]
    for first in _sources(key.value, heads, graph):
        for second in _sources(value.value, heads, graph):
            if region.values[first].shape[:3] != region.values[second].shape[:3]:
                continue
            rest = {name: one for name, one in given.items() if name not in _TENSORS and one is not None}
            tensors = query, Ref(first), Ref(second)
            new = Call(call.target, tensors, {**rest, _GROUPED: True}, call.outputs, call.range)
            if _is_same(call, new, region):
                return new
    return None


def _names(call: Call) -> tuple[str, ...]:
    """Of its parameters, in order, where the call is one that takes grouped heads; else nothing."""
    entry = entry_for(call.target)
    return entry.parameters if entry is not None and _GROUPED in entry.parameters else ()


def _is_fused(given: Mapping[str, Argument], region: Region) -> bool:
    """Whether PyTorch has a kernel that takes grouped heads for it, on any device that kernels are made for."""
    tensors = [given[name] for name in _TENSORS]
    infos = [region.values[one.value] for one in tensors if isinstance(one, Ref) and one.value in region.values]
    if len(infos) != 3 or given["attn_mask"] is not None or given["dropout_p"] or given[_GROUPED]:
        return False
    if any(len(info.shape) != 4 or info.dtype not in NARROW or info.strides[-1] != 1 for info in infos):
        return False
    query, key, _ = infos
    widths = {info.shape[-1] for info in infos}
    return len(widths) == 1 and max(widths) <= _HEAD and not (given["is_causal"] and query.shape[2] != key.shape[2])


def _sources(value: int, heads: int, graph: RegionGraph) -> Iterator[int]:
    """Values with fewer heads that it is a view or a copy of, the nearest first."""
    shape = graph.region.values[value].shape
    while (i := graph.producer.get(value)) is not None and graph.shape_only(i):
        value = operands(graph.calls[i])[0]
        if _may_be_shared(graph.region.values[value], shape, heads):
            yield value


def _may_be_shared(info: TensorInfo, repeated: tuple[int, ...], heads: int) -> bool:
    if len(info.shape) != len(repeated) or info.strides[-1] != 1:
        return False
    own, *others = info.shape[1], info.shape[0], *info.shape[2:]
    return own < heads and heads % own == 0 and (*others,) == (repeated[0], *repeated[2:])


def _is_same(call: Call, new: Call, region: Region) -> bool:
    """Whether both are one tensor program of the same values."""
    found = _lowered([*_between(call, new, region), call], region), _lowered([new], region)
    keys = [(_tied(one), key_of(one.program)[0]) for one in found if one is not None]
    return len(keys) == 2 and keys[0] == keys[1]


def _tied(lowered: Lowered) -> tuple[int, ...]:
    """The values that it reads, in the order of the program's key."""
    names = key_of(lowered.program)[1].tensors
    return tuple(lowered.inputs[name] for name in names if name in lowered.inputs)


def _lowered(calls: Sequence[Call], region: Region) -> Lowered | None:
    if any(entry_for(call.target) is None for call in calls):
        return None
    names, name = value_names(region), identifier_of(region)
    try:
        return lower(calls, region.values, region.live_ins, calls[-1].outputs, name, names, region.names.keys())
    except (NotLowerable, Duplicated):
        return None

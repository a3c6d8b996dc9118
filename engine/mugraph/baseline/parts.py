"""Calls that read or write a part of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from mugraph.baseline.launch import Values, name_of
from mugraph.baseline.memory import held_bytes
from mugraph.ir.calls import Call, Ref, operands

WRITTEN_PARTS = frozenset({"setitem", "index_copy", "copy"})
"""Calls that write what they are given, their last argument, into a part of a tensor."""
GATHERS = frozenset({"embedding", "getitem", "gather", "index_select", "take", "take_along_dim"})
"""Calls that read elements of a table, which others of their tensors choose."""


def gathered(call: Call, values: Values, reads: Mapping[int, int], owners: Mapping[int, int]) -> dict[int, int]:
    """Of the table no more bytes than are written: one row of an embedding's weights, for one token."""
    table = operands(call)[1 if name_of(call) == "embedding" else 0]
    chosen = sum(held_bytes(values[value]) for value in call.outputs)
    owner = owners.get(table, table)
    return {**reads, owner: min(reads[owner], chosen)}


class _Bytes(TypedDict):
    reads: dict[int, int]
    writes: dict[int, int]


def written(call: Call, values: Values, owners: Mapping[int, int]) -> _Bytes:
    """The bytes of what is written, read once and written once; of a number, at most the whole tensor."""
    whole, last = held_bytes(values[call.outputs[0]]), call.args[-1]
    if not isinstance(last, Ref):
        return {"reads": {}, "writes": {call.outputs[0]: whole}}
    size = min(whole, held_bytes(values[last.value]))
    return {"reads": {owners.get(last.value, last.value): size}, "writes": {call.outputs[0]: size}}

"""Writes in place to what a region reads, made after all else: `p.mul_(a).add_(g)` as `p.copy_(p * a + g)`.

What the code writes step by step is computed first, by functions that write nothing, so that a kernel may have it. Then
each tensor that was written to is given what it holds in the end. This is the same where no other tensor of the region
has any of its memory, which is tested at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from mugraph.ir.calls import Argument, Ref, renumbered
from mugraph.trace.regions.record_values import refs
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record
from mugraph.trace.run.values import Values

_STORE = "Tensor.copy_"
_DATA = "Tensor.data.__get__"


@dataclass(frozen=True)
class StoredLast:
    """records: without those writes, and with the stores behind them. stores: value numbers of tensors after these ->
    before"""

    records: Sequence[Record]
    stores: dict[int, int]


@dataclass
class _Memory:
    """A storage that is written to.

    found:   number of the tensor by which the region reads it
    now:     number of what it would hold
    unnoted: ids of tensors whose version counters are not that tensor's, as that of `p.data`
    counted: whether a write was noted by its own
    """

    found: int
    now: int
    last: Record
    unnoted: set[int] = field(default_factory=set[int])
    counted: bool = False


def stored_last(scope: Scope, records: Sequence[Record], writes: Sequence[Record], end: int) -> StoredLast | Record:
    """What is to be called in place of the records. If it cannot be told, the write that is at fault.

    records: of a unit, those that make tensors; writes: of these, those that are made last
    end:     the first event after the unit
    """
    try:
        return _Stores(scope.values, writes).of(records, end)
    except _AtFault as error:
        return next(one for one in writes if scope.values.storage(one.writes[0][0]) == error.storage)


class _AtFault(Exception):
    """storage: that may not be written to last"""

    def __init__(self, storage: int) -> None:
        super().__init__(storage)
        self.storage = storage


class _Stores:
    def __init__(self, values: Values, writes: Sequence[Record]) -> None:
        self._values = values
        self._writes = writes
        self._written = {values.storage(old) for record in writes for old, _ in record.writes}
        self._memories: dict[int, _Memory] = {}
        self._meant: dict[int, int] = {}
        """Numbers of tensors of these storages -> of what they hold."""

    def of(self, records: Sequence[Record], end: int) -> StoredLast:
        kept: list[Record] = []
        for record in records:
            for number in dict.fromkeys((*refs(record), *record.inputs)):
                self._read(number, record)
            if self._written.isdisjoint(map(self._values.storage, record.outputs)):
                kept.append(self._reading(record))
            elif record.writes:
                kept.append(self._computed(record))
            else:
                self._viewed(record)
        stores: dict[int, int] = {}
        for memory in self._memories.values():
            after = self._values.number_at(self._values.tensor(memory.found), end)
            kept += self._stored(memory, after)
            stores[after] = memory.found
        return StoredLast(kept, stores)

    def _read(self, number: int, record: Record) -> None:
        """A record reads a tensor."""
        storage = self._values.storage(number)
        if storage not in self._written or number in self._meant:
            return
        memory = self._memories.setdefault(storage, _Memory(number, number, record))
        # Of two tensors that were there before, the one could be written to by way of the other
        if memory.found != number and (memory.now == memory.found or not self._lie_alike(number, memory.found)):
            raise _AtFault(storage)
        self._meant[number] = memory.now

    def _viewed(self, record: Record) -> None:
        """A record makes a further tensor of such memory."""
        storage = next(one for one in map(self._values.storage, record.outputs) if one in self._written)
        memory = self._memories.get(storage)
        if memory is None or len(record.outputs) != 1 or not self._lie_alike(record.outputs[0], memory.found):
            raise _AtFault(storage)
        self._meant[record.outputs[0]] = memory.now
        sources = {id(self._values.tensor(number)) for number in record.inputs}
        if record.target == _DATA or not memory.unnoted.isdisjoint(sources):
            memory.unnoted.add(id(self._values.tensor(record.outputs[0])))

    def _computed(self, record: Record) -> Record:
        """A record that writes, as one that computes the same."""
        ((old, out),) = record.writes
        storage = self._values.storage(old)
        memory = self._memories.get(storage)
        if memory is None or record not in self._writes or record.outputs != (out,) or not self._lie_alike(old, out):
            raise _AtFault(storage)
        memory.counted |= id(self._values.tensor(old)) not in memory.unnoted
        made = replace(self._reading(record), outputs=(self._values.imagined(old),), writes=())
        memory.now, memory.last = made.outputs[0], record
        self._meant[out] = memory.now
        return made

    def _reading(self, record: Record) -> Record:
        """The record, of what the tensors hold that it reads."""
        new = {number: self._meant.get(number, number) for number in (*refs(record), *record.inputs)}
        args = tuple(renumbered(argument, new) for argument in record.args)
        kwargs = {name: renumbered(argument, new) for name, argument in record.kwargs.items()}
        return replace(record, args=args, kwargs=kwargs, inputs=tuple(new[number] for number in record.inputs))

    def _stored(self, memory: _Memory, after: int) -> list[Record]:
        """What gives the tensor what it holds after all writes, noted by its version counter as these are."""
        site, found = memory.last.site, memory.found
        target, records = found, list[Record]()
        if not memory.counted:
            target = self._values.imagined(found)
            records.append(Record(site, _DATA, (Ref(found),), {}, (found,), (target,), (), None))
        args: tuple[Argument, ...] = (Ref(target), Ref(memory.now))
        inputs, writes = (target, memory.now), ((target, after),)
        return [*records, Record(site, _STORE, args, {}, inputs, (after,), writes, None, _STORE)]

    def _lie_alike(self, one: int, other: int) -> bool:
        """Whether two tensors of one memory are the same elements."""
        infos, tensors = self._values.infos, (self._values.tensor(one), self._values.tensor(other))
        first, second = infos[one], infos[other]
        if (first.shape, first.strides, first.dtype) != (second.shape, second.strides, second.dtype):
            return False
        return tensors[0].storage_offset() == tensors[1].storage_offset() and not any(map(_is_seen_otherwise, tensors))


def _is_seen_otherwise(tensor: torch.Tensor) -> bool:
    """Whether its numbers are not those in its memory."""
    return tensor.is_neg() or tensor.is_conj()

"""Memory that a region shares with tensors outside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mugraph.trace.regions.record_values import refs
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record


def is_private_write(scope: Scope, record: Record, records: Sequence[Record], outs: Collection[int]) -> bool:
    """Whether a write in place is only a renaming: the tensor was made here, and what else shares its storage, as what
    it is a view of, is not read after the write. Views that are taken of it later are of the new value.

    records: the unit's; outs: value numbers that it leaves
    """
    for old, _ in record.writes:
        storage = scope.values.storage(old)
        if not _begins_here(scope, storage, records):
            return False
        if len(scope.values.objects(old)) == 1:
            continue
        # What is stored into a part stays a write, and a write has one name
        if record.in_place:
            return False
        read = {*outs, *(number for other in records for number in refs(other))}
        if not read.isdisjoint(scope.values.changed_with(old)):
            return False
    return True


def _begins_here(scope: Scope, storage: int, records: Sequence[Record]) -> bool:
    """Whether the first record of the storage makes it, where a view would have been given it."""
    for record in records:
        if any(scope.values.storage(number) == storage for number in (*record.inputs, *refs(record))):
            return False
        if any(scope.values.storage(number) == storage for number in record.outputs):
            return True
    return False


def is_aliased(scope: Scope, outs: Iterable[int], produced: set[int], consumed: Iterable[int]) -> bool:
    """Whether an output shares storage with an input that the program writes to: a copy would not change with it. An
    output that is the input itself, after a write, is no copy."""
    inputs = {scope.values.storage(number) for number in consumed}
    same = {id(scope.values.tensor(number)) for number in consumed}
    return any(
        scope.values.storage(out) in inputs
        and out in produced
        and scope.values.is_written(out)
        and id(scope.values.tensor(out)) not in same
        for out in outs
    )

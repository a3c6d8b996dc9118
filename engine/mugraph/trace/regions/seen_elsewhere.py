"""Memory that a region shares with tensors outside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record


def is_private_write(scope: Scope, record: Record, records: Sequence[Record]) -> bool:
    """Whether a write in place is only a renaming: the tensor was made here and shares its storage with no other."""
    for old, _ in record.writes:
        if len(scope.values.objects(old)) != 1:
            return False
        storage = scope.values.storage(old)
        made_here = any(
            scope.values.storage(number) == storage and not other.writes
            for other in records
            for number in other.outputs
        )
        if not made_here:
            return False
    return True


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

"""The values among the arguments of recorded calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import cast

from mugraph.ir.region import Argument, Ref
from mugraph.trace.run.tape import Record


def refs(record: Record) -> Iterator[int]:
    """The values among a record's arguments."""
    stack: list[Argument] = [*reversed((*record.args, *record.kwargs.values()))]
    while stack:
        argument = stack.pop()
        if isinstance(argument, Ref):
            yield argument.value
        elif isinstance(argument, tuple):
            stack.extend(reversed(argument))
        elif isinstance(argument, slice):
            stack.extend(cast(Argument, part) for part in (argument.start, argument.stop, argument.step))


def needed(records: Sequence[Record], live: Iterable[int], effects: Collection[int] = ()) -> list[Record]:
    """The records whose results the live values depend on, and those with effects.

    live: value numbers; effects: outputs of records that write where others see it
    """
    wanted = {*live, *effects}
    kept: list[Record] = []
    for record in reversed(records):
        if wanted.intersection(record.outputs):
            kept.append(record)
            wanted.update(refs(record))
    return kept[::-1]

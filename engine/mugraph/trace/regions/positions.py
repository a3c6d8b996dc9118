"""Where writes go: a region is of little use if it holds for one position of a loop that moves on.

Nothing here decides whether a region is right: its guards do. It decides where a run of statements is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from mugraph.ir.calls import STORES, Argument
from mugraph.trace.regions.conditions import Conditions
from mugraph.trace.run.tape import Record


def moving(records: Sequence[Record], conditions: Conditions) -> Record | None:
    """The first of the writes whose place follows from a number that the region is guarded by, as in
    `cache[:, pos : pos + 1] = k`, where the region then holds for one `pos`. What a tensor says, or the code, is none.

    records: those that write
    """
    guarded = {int(text) for texts in conditions.values() for text in texts if text.isdecimal()}
    for record in records:
        if record.in_place == STORES and not guarded.isdisjoint(_near(record.args[1])):
            return record
    return None


def _near(index: Argument) -> Iterator[int]:
    """Numbers that a place in an index is likely computed from: itself, and one beside it."""
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, slice):
            start, stop = cast(Argument, item.start), cast(Argument, item.stop)
            ends = (start, stop) if isinstance(start, int) else ()
            yield from (n + d for n in ends if isinstance(n, int) for d in (-1, 0, 1))
        elif isinstance(item, int) and not isinstance(item, bool):
            yield from (item - 1, item, item + 1)

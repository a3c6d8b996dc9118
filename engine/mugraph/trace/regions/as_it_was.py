"""Lists and dicts that a region reads and that the program changes afterwards, as one that a loop appends to.

Guards are written when the run is over, of the objects as they then are. One whose length or content was another where
the region ran would have a guard for the wrong calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mugraph.trace.regions.conditions import constant, without_literal
from mugraph.trace.run.tape import Event, Happening, Loaded, Was


def changed_later(read: Iterable[object], events: Sequence[Event], tape: Sequence[Event], start: int) -> bool:
    """read: what the region's names stood for. events: its own. start: of the tape's, the first after its beginning"""
    held = {id(one): one for one in [*read, *(e.value for e in events if isinstance(e, Loaded))] if _holds(one)}
    if not held:
        return False
    seen: set[int] = set()
    for event in tape[start:]:
        if isinstance(event, Happening) and event.mutates in held and event.mutates not in seen:
            seen.add(event.mutates)  # later changes begin from what this one left
            now = Was.of(held[event.mutates])
            if event.before is not None and (_said(event.before) != _said(now) or _is_unknown(event.before)):
                return True
    return False


def _holds(value: object) -> bool:
    return type(value) in (list, dict)


def _said(was: Was | None) -> tuple[int, str | None] | None:
    """What a guard says of it."""
    if was is None:
        return None
    return was.length, constant(was.items) or without_literal(was.items) if was.items is not None else None


def _is_unknown(was: Was) -> bool:
    """Whether nobody knows any more what was in it, which a guard may be about."""
    return was.items is None

"""Whether what happened while code ran may be computed by a region in its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mugraph.trace.regions.gathering import lists_made
from mugraph.trace.run.tape import Activation, Event, Happening, Record


def is_clean(activation: Activation, events: Sequence[Event], before: Collection[int] = ()) -> bool:
    """before: lists that were made earlier in the same run of statements"""
    made = lists_made(events) | set(before)
    for event in events:
        if isinstance(event, Record) and event.problem is not None:
            return False
        if isinstance(event, Happening):
            is_called = event.site.activation != activation.index
            if event.problem is not None and not (event.to_replace and is_called):
                return False
            if event.mutates is not None and event.mutates not in made:
                return False
    return True

"""A file traced for every way in which its functions were called: once for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mugraph.ir.region import Trace
from mugraph.memory.traces import traced
from mugraph.recording.regions import shared
from mugraph.recording.runs import Runs
from mugraph.recording.ways import Way, with_way
from mugraph.search.topologies.limits import never
from mugraph.store import Store


@dataclass(frozen=True)
class TracedWays:
    """trace: with the regions of all ways, and the shares of a recorded run. ways: by region, where it is of another
    way than the one that took longest"""

    trace: Trace
    ways: Mapping[int, Way] = field(default_factory=dict[int, Way])


def with_other_ways(
    trace: Trace,
    path: Path,
    text: str,
    runs: Runs,
    *,
    qualname: str | None = None,
    timeout_s: float,
    store: Store | None,
    cancelled: Callable[[], bool] = never,
) -> TracedWays:
    """The trace, with regions of the other ways after its own where they take calls that its own do not.

    text: that was traced. qualname, timeout_s, store, cancelled: as of `traced`
    """
    ways: dict[int, Way] = {}
    for way in runs.ways if runs.calls else ():
        if cancelled():
            break
        more = traced(
            path,
            source=text,
            qualname=qualname,
            recorded_shapes=way.recorded_shapes,
            pictures=way.pictures,
            timeout_s=timeout_s,
            store=store,
            cancelled=cancelled,
        )
        found = with_way(trace, more, runs.calls, text, ranged_only=bool(way.comments))
        ways |= dict.fromkeys(range(len(trace.regions), len(found.regions)), way)
        trace = replace(found, notices=(*found.notices, *_left_out(more, found)))
    comments = {
        number: comment
        for number, way in ways.items()
        if (comment := way.comments.get(trace.regions[number].function)) is not None
    }
    return TracedWays(shared(trace, runs.shares, text, comments), ways)


def _left_out(way: Trace, trace: Trace) -> Iterator[str]:
    """What keeps a way from being searched, once."""
    for error in way.errors:
        said = f"one of the ways in which it was called is not searched: {error}"
        if error not in trace.errors and said not in trace.notices:
            yield said

"""What a function does in which no region was found: who asks about it is told why there is nothing to offer."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.regions.replacement_unit import Refused
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record

_MOST = 4
"""Calls that are named."""


def no_region(scope: Scope, refused: Mapping[int, Refused]) -> str | None:
    """ "pooled has no region: torch.cumsum in line 9 is a kernel of PyTorch's own, and nothing else is computed in it".
    None where it calls nothing of PyTorch's that computes, or is not in the file.

    refused: line -> why what would be a region around it is none"""
    outermost = next((one for one in scope.tape.activations if one.site is None and scope.is_here(one)), None)
    if outermost is None:
        return None
    lines: dict[str, dict[int, None]] = {}
    for event in scope.events(outermost):
        if isinstance(event, Record) and event.outputs and not _is_view(event.target):
            line = scope.range_in(outermost, event).start.line + 1
            lines.setdefault(canonical(event.target), {})[line] = None
    if not lines:
        return None
    name = scope.name_of(outermost)
    if refused:
        why = [f"line {line} {one.reason}" for line, one in list(refused.items())[:_MOST]]
        return f"{name} has no region: {' and '.join(why)}"
    said = [
        f"{name} in line{'s' if len(places) > 1 else ''} {', '.join(map(str, sorted(places)))}"
        for name, places in lines.items()
    ]
    if len(said) > _MOST:
        said = [*said[:_MOST], f"{len(said) - _MOST} other functions of PyTorch's"]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    what = "are kernels" if len(said) > 1 or ", " in listed else "is a kernel"
    return f"{name} has no region: {listed} {what} of PyTorch's own, and nothing else is computed in it"


def _is_view(target: str) -> bool:
    entry = entry_for(target)
    return entry is not None and entry.shape_only

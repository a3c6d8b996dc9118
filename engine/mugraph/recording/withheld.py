"""What recorded calls say of regions before anything is searched: how many of them a region's kernel would take, and,
where it would take none, that it is not worth a search."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from mugraph.ir.region import Region, Trace
from mugraph.ir.shares import Share
from mugraph.recording.memory import Seen
from mugraph.recording.misfits import GRADIENT, misfits
from mugraph.trace.syntax.definitions import definitions

_MOST = 3
"""Reasons that are said of one region."""


@dataclass
class Fitting:
    """Of one region. calls, seconds: of the recorded calls that its kernel would take; of_seconds: of all of them;
    others: by the first reason, the calls that it would not take."""

    calls: int = 0
    seconds: float = 0.0
    of_calls: int = 0
    of_seconds: float = 0.0
    others: Counter[str] = field(default_factory=Counter[str])

    @property
    def part(self) -> float:
        """Of the recorded time of its function; of the calls, where no time was taken."""
        return self.seconds / self.of_seconds if self.of_seconds else self.calls / max(1, self.of_calls)


def withhold(trace: Trace, text: str, calls: Mapping[str, Sequence[Seen]], *, gpu: bool = False) -> Trace:
    """The trace: its regions that no recorded call would take have the reason, its shares how many calls are taken.

    text: that was traced. calls: by function. gpu: there is one here, so that a call on the CPU is one that will be
    """
    if not calls:
        return trace
    bound = bound_names(text)
    regions, shares = list(trace.regions), dict(trace.shares)
    for number, region in enumerate(regions):
        seen = calls.get(region.function, ())
        if region.status is not None or not seen:
            continue
        names = bound.get(region.function, frozenset[str]())
        before = [one for one in regions[:number] if one.status is None and is_same_code(one, region)]
        fitting = fitted(region, seen, names, before, gpu=gpu)
        if not fitting.calls:
            regions[number] = replace(region, status="unsupported", reason=_never(fitting.others))
        if number in shares:
            shares[number] = _of_those(shares[number], fitting)
    return replace(trace, regions=tuple(regions), shares=shares)


def is_same_code(one: Region, other: Region) -> bool:
    """Whether both may be written: the second is asked where the first refuses."""
    return (one.function, one.range, one.unit) == (other.function, other.range, other.unit)


def fitted(
    region: Region,
    calls: Sequence[Seen],
    bound: frozenset[str] = frozenset(),
    before: Sequence[Region] = (),
    *,
    gpu: bool = False,
) -> Fitting:
    """bound: arguments that the function binds anew. before: regions that are asked first"""
    found = Fitting()
    for call in calls:
        why, count = next(misfits(region, call, bound, gpu=gpu), None), max(call.call.calls, 1)
        if any(next(misfits(one, call, bound, gpu=gpu), None) is None for one in before):
            why = "another kernel for this code is asked first"
        found.of_calls += count
        found.of_seconds += call.call.seconds
        if why is None:
            found.calls += count
            found.seconds += call.call.seconds
        else:
            found.others[why] += count
    return found


def _of_those(share: Share, fitting: Fitting) -> Share:
    why = next((f"{why} ({count})" for why, count in fitting.others.most_common(1)), "")
    return msgspec.structs.replace(share, fits=fitting.calls, of=fitting.of_calls, taken=fitting.part, others=why)


def _never(reasons: Counter[str]) -> str:
    total, found = sum(reasons.values()), reasons.most_common()
    if len(found) == 1:
        [(why, _)] = found
        if why == GRADIENT:
            whose = f"all {total} recorded calls want" if total > 1 else "the one recorded call wants"
            return f"its kernel would never run: {whose} a gradient"
        whose = f"in all {total} recorded calls" if total > 1 else "in the one recorded call"
        return f"its kernel would never run: {whose} {why}"
    said = [f"{why} ({count})" for why, count in found[:_MOST]] + (["others"] if len(found) > _MOST else [])
    return f"its kernel would never run: in none of the {total} recorded calls does it fit: {'; '.join(said)}"


def bound_names(text: str) -> dict[str, frozenset[str]]:
    """By function, the names that it binds."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        one.name: frozenset(
            name.id for name in ast.walk(one.node) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
        )
        for one in definitions(tree)
        if not isinstance(one.node, ast.ClassDef)
    }

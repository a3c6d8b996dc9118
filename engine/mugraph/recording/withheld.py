"""Regions whose kernel would take none of the recorded calls: they are said to be so before anything is searched.

What a region's guard will ask of its function's arguments, and of the tensors that its object keeps, is compared with
every recorded call. What a recording does not say counts as fitting.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.region import Region, Trace
from mugraph.recording.memory import Seen
from mugraph.recording.shown import shown, trains
from mugraph.trace.syntax.definitions import definitions

_GRADIENT = "a gradient is wanted"
_MOST = 3
"""Reasons that are said of one region."""


def withhold(trace: Trace, text: str, calls: Mapping[str, Sequence[Seen]], *, gpu: bool = False) -> Trace:
    """The trace, its regions that no recorded call would take with the reason.

    text: that was traced. calls: by function. gpu: there is one here, so that a call on the CPU is one that will be
    """
    if not calls:
        return trace
    bound = _bound(text)

    def judged(region: Region) -> Region:
        seen = calls.get(region.function, ())
        if region.status is not None or not seen:
            return region
        reason = why_never_taken(region, seen, bound.get(region.function, frozenset()), gpu=gpu)
        return region if reason is None else replace(region, status="unsupported", reason=reason)

    return replace(trace, regions=tuple(judged(region) for region in trace.regions))


def why_never_taken(
    region: Region, calls: Sequence[Seen], bound: frozenset[str] = frozenset(), *, gpu: bool = False
) -> str | None:
    """None where one of the calls would be taken. bound: arguments that the function binds anew: a recording does not
    say what they are at the region."""
    reasons: Counter[str] = Counter()
    for call in calls:
        why = next(_misfits(region, call, bound, gpu), None)
        if why is None:
            return None
        reasons[why] += max(call.call.calls, 1)
    total, found = sum(reasons.values()), reasons.most_common()
    if len(found) == 1:
        [(why, _)] = found
        if why == _GRADIENT:
            whose = f"all {total} recorded calls want" if total > 1 else "the one recorded call wants"
            return f"its kernel would never run: {whose} a gradient"
        whose = f"in all {total} recorded calls" if total > 1 else "in the one recorded call"
        return f"its kernel would never run: {whose} {why}"
    said = [f"{why} ({count})" for why, count in found[:_MOST]] + (["others"] if len(found) > _MOST else [])
    return f"its kernel would never run: in none of the {total} recorded calls does it fit: {'; '.join(said)}"


def _misfits(region: Region, seen: Seen, bound: frozenset[str], gpu: bool) -> Iterator[str]:
    """In the order that a guard asks."""
    call = seen.call
    tensors = [
        (live_in, found)
        for live_in in region.live_ins
        if _root(live_in.expression) not in bound
        and (found := shown(seen, live_in.expression, _self_name(region))) is not None
    ]
    known = {live_in.value for live_in, _ in tensors}
    others = [(one.expression, region.values[one.value]) for one in region.live_ins if one.value not in known]
    if any(found.wants_gradient for _, found in tensors) or any(
        trains(seen, expression, info.dtype, info.shape) for expression, info in others
    ):
        yield _GRADIENT
    if gpu and call.devices and all(device.partition(":")[0] == "cpu" for device in call.devices):
        yield "the tensors are on the CPU"
    for live_in, found in tensors:
        name, info = live_in.expression, region.values[live_in.value]
        if found.dtype != info.dtype:
            yield f"{name} is {found.dtype}, the kernel is for {info.dtype}"
        if not _fits(region, live_in.value, found.shape):
            yield f"{name} has shape {_listed(found.shape)}, the kernel is for {_listed(info.shape)}"
        elif found.strides is not None and not _laid_out(region, live_in.value, found.shape, found.strides):
            yield f"{name} has strides {_listed(found.strides)}, the kernel is for {_listed(info.strides)}"


def _root(expression: str) -> str:
    """ "self" of "self.norm.weight"."""
    return re.split(r"[.\[]", expression, maxsplit=1)[0]


def _self_name(region: Region) -> str | None:
    """None in a function of no class: an argument is what it is called then."""
    return region.function_args[0] if "." in region.function and region.function_args else None


def _fits(region: Region, value: int, shape: Sequence[int]) -> bool:
    """A dimension that varies with a declared size is a multiple of one in its range."""
    wanted, made = region.values[value].shape, region.dynamic
    if len(shape) != len(wanted):
        return False
    for dim, (seen, size) in enumerate(zip(shape, wanted, strict=True)):
        factors = made.shapes.get(value) if made is not None else None
        if made is not None and factors is not None and factors[dim]:
            if seen % factors[dim] or not made.range.least <= seen // factors[dim] <= made.range.largest:
                return False
        elif seen != size:
            return False
    return True


def _laid_out(region: Region, value: int, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """The stride of a dimension of size 1 addresses nothing. Those that vary with a size are unknown here."""
    if region.dynamic is not None and value in region.dynamic.strides:
        return True
    wanted = region.values[value].strides
    return all(size == 1 or one == other for size, one, other in zip(shape, strides, wanted, strict=True))


def _listed(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def _bound(text: str) -> dict[str, frozenset[str]]:
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

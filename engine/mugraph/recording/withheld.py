"""What recorded calls say of regions before anything is searched: how many of them a region's kernel would take, and,
where it would take none, that it is not worth a search."""

from __future__ import annotations

import ast
import contextlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from mugraph.ir.region import Region, Trace
from mugraph.ir.shares import Share
from mugraph.recording.argument_specs import alike
from mugraph.recording.memory import Seen
from mugraph.recording.misfits import GRADIENT, misfits, part_inside, unknown
from mugraph.recording.shown import MANY
from mugraph.trace.syntax.definitions import definitions

_MOST = 3
"""Reasons that are said of one region."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
    bindings = Bindings(text)
    regions, shares = list(trace.regions), dict(trace.shares)
    for number, region in enumerate(regions):
        seen = calls.get(region.function, ())
        if region.status is not None or not seen:
            continue
        bound = bindings.before(region)
        before = [] if bindings.in_loop(region) else asked_before(region, regions[:number])
        fitting = fitted(region, seen, bound, before, gpu=gpu)
        if not fitting.calls:
            regions[number] = replace(region, status="unsupported", reason=_never(fitting.others))
        if number in shares:
            shares[number] = _of_those(shares[number], fitting)
    return replace(trace, regions=tuple(regions), shares=shares)


def is_same_code(one: Region, other: Region) -> bool:
    """Whether both may be written: the second is asked where the first refuses."""
    return (one.function, one.range, one.unit) == (other.function, other.range, other.unit)


def asked_before(region: Region, others: Sequence[Region]) -> list[Region]:
    """Of the others, those for the same code: they come first, so that a call may be theirs."""
    return [one for one in others if one.status is None and is_same_code(one, region)]


def fitted(
    region: Region,
    calls: Sequence[Seen],
    bound: frozenset[str] = frozenset(),
    before: Sequence[Region] = (),
    *,
    gpu: bool = False,
) -> Fitting:
    """Where the region reads what no recording shows, calls with arguments like those of the longest one that fits are
    taken to fit as well: with the same sizes, or, if the region is for ranges of sizes, with sizes in these.

    calls: what took longest first. bound: arguments that the function binds anew. before: regions that are asked first
    """
    others: set[int] = set()
    for one in before:
        refusals = _refusals(one, calls, bound, others, gpu)
        others |= {at for at, why in enumerate(refusals) if why is None and not _one_number(one, calls[at], bound)}
    found = Fitting()
    for call, why in zip(calls, _refusals(region, calls, bound, others, gpu), strict=True):
        count = max(call.call.calls, 1)
        many = _one_number(region, call, bound) if why is None and count > 1 else []
        if many:
            # what the function has made may depend on the number: of these calls, the one that was traced fits
            found.of_calls += count - 1
            found.of_seconds += call.call.seconds * (count - 1) / count
            found.others[f"{', '.join(many)} is {MANY}"] += count - 1
            call, count = _some_of(call, 1), 1
        elif why is None and (inside := part_inside(region, call)) < 1:
            few = round(count * (1 - inside))
            found.of_calls += few
            found.of_seconds += call.call.seconds * few / count
            found.others["a whole number is outside of the range"] += few
            call, count = _some_of(call, count - few), count - few
        found.of_calls += count
        found.of_seconds += call.call.seconds
        if why is None:
            found.calls += count
            found.seconds += call.call.seconds
        else:
            found.others[why] += count
    return found


def _refusals(
    region: Region, calls: Sequence[Seen], bound: frozenset[str], others: Collection[int], gpu: bool
) -> list[str | None]:
    """Why each call is not taken; None where it is. others: calls that another region takes, by their place"""
    found: list[str | None] = []
    first: Mapping[str, str] | None = None
    if region.dynamic is not None and region.dynamic.recorded:
        first = region.dynamic.recorded
    for at, call in enumerate(calls):
        why, given = next(misfits(region, call, bound, gpu=gpu), None), call.call.arguments
        if at in others:
            why = "another kernel for this code is asked first"
        elif why is None and unknown(region, call, bound):
            first = first if first is not None else given
            ranges = region.dynamic.ranges if region.dynamic is not None else ()
            if given != first and not alike(given, first, ranges, _free(region, call)):
                why = f"the arguments are others ({', '.join(_others(given, first))})"
        found.append(why)
    return found


def _one_number(region: Region, call: Seen, bound: frozenset[str]) -> list[str]:
    """Whole numbers of which these calls have many values, where the region is for one of each: it reads what the
    function has made before."""
    many = [name for name, number in call.call.numbers.items() if number is None]
    many = [name for name in many if name not in _free(region, call)]
    return many if many and unknown(region, call, bound) else []


def _free(region: Region, call: Seen) -> frozenset[str]:
    """Whole numbers among the arguments of which the call may have any value that it has: the region has a range for
    them, or is the same for all of these."""
    ranged = region.dynamic.arguments.keys() if region.dynamic is not None else frozenset[str]()
    found = set(ranged)
    for name, (least, largest) in region.alike_for.items():
        number = call.call.numbers.get(name)
        first, last = call.call.spans.get(name, (0, largest + 1)) if number is None else (number, number)
        found |= {name} if least <= first and last <= largest else set()
    return frozenset(found)


def _some_of(call: Seen, count: int) -> Seen:
    """So many of the calls."""
    seconds = call.call.seconds * count / max(call.call.calls, 1)
    return replace(call, call=msgspec.structs.replace(call.call, calls=count, seconds=seconds))


def _others(arguments: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """ "x: f32[1, 8]" of those that differ."""
    names = [name for name in {**arguments, **wanted} if arguments.get(name) != wanted.get(name)]
    return [f"{name}: {arguments.get(name, 'left out')}" for name in names]


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


class Bindings:
    """Where the functions of a file bind names. text: of the file"""

    def __init__(self, text: str) -> None:
        self._functions: dict[str, ast.AST] = {}
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.parse(text)
            self._functions = {
                one.name: one.node for one in definitions(tree) if not isinstance(one.node, ast.ClassDef)
            }

    def in_loop(self, region: Region) -> bool:
        """Whether one call of its function may execute it several times: each time it may be in another way."""
        function = self._functions.get(region.function)
        return function is not None and any(
            isinstance(node, _LOOPS) and _is_around(node, region) for node in ast.walk(function)
        )

    def before(self, region: Region) -> frozenset[str]:
        """Names that its function binds before the region, or in a loop around it."""
        function, line = self._functions.get(region.function), region.range.start.line + 1
        if function is None:
            return frozenset()
        bound: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.lineno < line:
                bound.add(node.id)
            elif isinstance(node, ast.For | ast.While) and node.lineno <= line <= (node.end_lineno or line):
                inside = (one for one in ast.walk(node) if isinstance(one, ast.Name))
                bound.update(one.id for one in inside if not isinstance(one.ctx, ast.Load))
        return frozenset(bound)


def _is_around(node: ast.AST, region: Region) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return first <= region.range.start.line + 1 and region.range.end.line + 1 <= last

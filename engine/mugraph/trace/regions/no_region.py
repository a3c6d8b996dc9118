"""What a function does in which no region was found: who asks about it is told why there is nothing to offer."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.pytorch.targets import matters
from mugraph.trace.regions.replacement_unit import Refused
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import STATEMENT, Activation, Event, Happening, Record

_MOST = 4
"""Calls, or lines, that are named."""
_MUCH = 2
"""Products and reductions that one line has a library make: with one, it is a call of that."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
    if len(lines) > 1 and (inside := _comprehension(scope.function(outermost), lines)) is not None:
        return (
            f"{name} has no region: all is computed in the comprehension in line {inside}, whose elements are not "
            "searched; the body of a loop is, and a function that is called for each element"
        )
    if refused:
        why = [f"line {line} {one.reason}" for line, one in list(refused.items())[:_MOST]]
        return f"{name} has no region: {' and '.join(why)}"
    if (elsewhere := _elsewhere(scope, outermost)) is not None:
        return f"{name} has no region: {elsewhere}"
    said = [
        f"{name} in line{'s' if len(places) > 1 else ''} {', '.join(map(str, sorted(places)))}"
        for name, places in lines.items()
    ]
    if len(said) > _MOST:
        said = [*said[:_MOST], f"{len(said) - _MOST} other functions of PyTorch's"]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    what = "are kernels" if len(said) > 1 or ", " in listed else "is a kernel"
    return f"{name} has no region: {listed} {what} of PyTorch's own, and nothing else is computed in it"


def lines_without(scope: Scope, regions: Sequence[Region], told: Collection[int], most_calls: int) -> Iterator[str]:
    """Of functions that have regions: lines outside of them that have a library make many calls, which is what a whole
    encoder of PyTorch's own is, or a call that no region may have, and why they are in none.

    regions: those that are kept. told: lines of which something is said already. most_calls: of a region
    """
    left: dict[tuple[str, int], list[Event]] = {}
    for (name, line, _, _), events in _steps(scope, regions).items():
        if line not in told and len(events) > len(left.get((name, line), ())):
            left[name, line] = events
    for (name, line), events in sorted(left.items(), key=lambda item: -len(item[1]))[:_MOST]:
        records = [event for event in events if isinstance(event, Record)]
        first = next((one for one in events if isinstance(one, Record | Happening) and one.problem), None)
        # A call that no region may have is said for itself: it parts what stands before it from what stands after it
        if not isinstance(first, Record) and sum(matters(record.target) for record in records) < _MUCH:
            continue
        if first is not None:
            what = _part_of_none(scope, first)
            yield f"{name}, line {line}, has no region: {what} is no part of one ({first.problem})"
        elif len(records) > most_calls:
            yield (
                f"{name}, line {line}, has no region: a library's code makes {len(records)} calls of PyTorch's in it, "
                f"and a region has {most_calls} at most"
            )


def _part_of_none(scope: Scope, event: Record | Happening) -> str:
    """A call by its name; a statement, which has none, by its line."""
    if isinstance(event, Record):
        return f"{canonical(event.target)}, which it calls,"
    if event.name != STATEMENT:
        return f"{event.name}, which it calls,"
    inner = scope.tape.activations[event.site.activation]
    line = getattr(scope.node(inner.steps[event.site.step].node), "lineno", 0)
    place = "" if scope.is_in_file(inner) else f" of {Path(scope.file_of(inner).source.path).name}"
    return f"line {line}{place}, which it runs,"


_Step = tuple[str, int, int, int]


def _steps(scope: Scope, regions: Sequence[Region]) -> dict[_Step, list[Event]]:
    """Function, line, activation and step -> what happened there, where no region has it. Each event counts for the
    innermost function that is in the file."""
    covered: set[int] = set()
    places: dict[int, _Step] = {}
    for activation in scope.tape.activations:  # those that called come before what they called
        if not scope.is_in_file(activation):
            continue
        name = scope.name_of(activation)
        ranges = [one.range for one in regions if one.function == name]
        for number in range(activation.event, activation.end):
            event = scope.tape.events[number]
            site = event.site.within(activation.index)
            if site is None:
                continue
            line = scope.range_in(activation, event).start.line + 1
            places[number] = name, line, activation.index, site.step
            if any(one.start.line < line <= one.end.line + 1 for one in ranges):
                covered.add(number)
    found: dict[_Step, list[Event]] = {}
    for number, place in places.items():
        if number not in covered:
            found.setdefault(place, []).append(scope.tape.events[number])
    return found


def _elsewhere(scope: Scope, outermost: Activation) -> str | None:
    """Where most of it is computed, if that is a function of another file, with a product or a reduction in it."""
    every, inner = _calls(scope, outermost), outermost
    while (next_one := _with_most(scope, inner)) is not None and 2 * len(_calls(scope, next_one)) >= len(every):
        inner = next_one
    records = _calls(scope, inner)
    if scope.is_in_file(inner) or not any(matters(record.target) for record in records):
        return None
    file, line = scope.file_of(inner), scope.function(inner).lineno
    place = f"{scope.name_of(inner)}, in {Path(file.source.path).name}, line {line}"
    how = (
        ", where there is no region"
        if file.is_own
        else "; in a library's code they are put in place from Python: mugraph.optimize(model, *inputs)"
    )
    return f"{len(records)} of the {len(every)} calls that it makes of PyTorch's are made by {place}{how}"


def _calls(scope: Scope, activation: Activation) -> list[Record]:
    return [event for event in scope.events(activation) if isinstance(event, Record) and event.outputs]


def _with_most(scope: Scope, outer: Activation) -> Activation | None:
    """Of the functions that it called, the one that made most calls of PyTorch's."""
    inner = [one for one in scope.tape.activations if one.site is not None and one.site.activation == outer.index]
    return max(inner, key=lambda one: len(_calls(scope, one)), default=None)


def _comprehension(function: ast.AST, lines: Mapping[str, Mapping[int, None]]) -> int | None:
    """The line of the innermost one in which all of these are."""
    places = {line for of_call in lines.values() for line in of_call}
    around = [node for node in ast.walk(function) if isinstance(node, _COMPREHENSIONS)]
    found = [node.lineno for node in around if all(node.lineno <= at <= (node.end_lineno or at) for at in places)]
    return found[-1] if found else None


def _is_view(target: str) -> bool:
    entry = entry_for(target)
    return entry is not None and entry.shape_only

"""One place for all executions of a piece of code.

A function that is executed in several ways is cut in several ways: what comes after a branch that was not taken is in
no region of that execution, and is in those of others. Kernels of one function must not overlap. So the place that
computes most is taken, and the other executions are cut there as well, where they can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from mugraph.trace.regions.assemble import Assembled
from mugraph.trace.regions.executions import Execution, Item
from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.ways import Found, add, overlap
from mugraph.trace.run.tape import Activation
from mugraph.trace.syntax.nodes import number_of


class Search(Protocol):
    """execution: of an activation's body. made: the region of a unit, where it is one"""

    def execution(self, activation: Activation) -> Execution: ...

    def may_be_in_run(self, activation: Activation, item: Item) -> bool: ...

    def made(self, unit: Unit) -> Assembled | None: ...


def in_one_place(found: Found, search: Search) -> Found:
    chosen: Found = {}
    left = dict(sorted(found.items(), key=lambda item: -_work(item[1])))
    for key, ways in left.items():
        if not any(overlap(key[1], there) for _, there in chosen):
            chosen[key] = ways
    for key, ways in left.items():
        if key in chosen:
            continue
        for there in [other for other in chosen if other[0] == key[0] and overlap(key[1], other[1])]:
            like = chosen[there][0].unit
            for unit in (unit for way in ways for unit in way.units):
                at = _at(unit, like, search)
                again = search.made(at) if at is not None else None
                if again is not None and (again.region.function, again.region.range) == there:
                    add(chosen, there, again)
    return {key: chosen[key] for key in found if key in chosen}


def _work(ways: Sequence[Assembled]) -> int:
    """Calls that all executions together make there."""
    return sum(way.times * len(way.region.calls) for way in ways)


def _at(unit: Unit, like: Unit, search: Search) -> Unit | None:
    """The unit of the first one's execution at the place of the second; None where it did not get there, or has more
    than tensor code there."""
    if like.expression is not None:
        numbers = [like.activation.steps[like.first].node]
    else:
        numbers = [number_of(statement) for statement in like.statements]
    for items in _runs(search.execution(unit.activation), numbers):
        if not (items[0].first < unit.after and unit.first < items[-1].after):
            continue
        if like.expression is not None:
            return replace(like, activation=unit.activation, first=items[0].first, after=items[0].first + 1)
        if all(search.may_be_in_run(unit.activation, item) for item in items):
            return replace(like, activation=unit.activation, first=items[0].first, after=items[-1].after)
    return None


def _runs(execution: Execution, numbers: Sequence[int]) -> Iterator[Sequence[Item]]:
    """The executions of these statements, which follow one another in one block."""
    seen = [number_of(item.statement) for item in execution.items]
    if numbers[0] in seen:
        start = seen.index(numbers[0])
        if seen[start : start + len(numbers)] == list(numbers):
            yield execution.items[start : start + len(numbers)]
    for item in execution.items:
        for child in item.children:
            yield from _runs(child, numbers)

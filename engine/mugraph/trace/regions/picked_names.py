"""How a unit names the rows that it reads at numbers that vary: `self.sigmas[self.step + 1]`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from mugraph.trace.regions.number_names import told_before
from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.replacement_unit import Offence, Unit, step_of
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.picked import PICKS
from mugraph.trace.run.tape import Event, Record
from mugraph.trace.run.varying import Varying


def picked_names(
    scope: Scope, unit: Unit, events: Sequence[Event], paths: Paths, consumed: Iterable[int], names: Mapping[int, str]
) -> dict[int, str] | Offence:
    """Expressions of the rows, by their value numbers. A row is read where the unit begins, so nothing in the unit may
    write to what it is a row of.

    names: expressions of the tensors that are there before the unit
    """
    picked = {number: scope.tape.picked[number] for number in consumed if number in scope.tape.picked}
    wanted = {number: one for number, one in picked.items() if number not in names}
    if not wanted:
        return {}
    written = {scope.values.storage(old) for event in events if isinstance(event, Record) for old, _ in event.writes}
    told = told_before(unit, events, paths)
    found: dict[int, str] = {}
    for number, one in wanted.items():
        at = step_of(one.record, unit)
        if scope.values.storage(number) in written:
            return Offence(at, "reads a row, at a number that may vary, of a tensor that it writes to")
        index = _told(one.index, told)
        if one.base not in names or index is None:
            return Offence(at, "reads a row at a number that may vary, which has no name before")
        found[number] = ast.unparse(ast.parse(f"{names[one.base]}[{index}]", mode="eval"))
    return found


def picked_from(scope: Scope, events: Sequence[Event], picked: Iterable[int]) -> set[int]:
    """What the rows are read from, where nothing else is asked of any tensor: how many rows it has is of no account."""
    for event in events:
        if isinstance(event, Record) and not event.outputs and event.target != PICKS:
            return set()
    return {scope.tape.picked[number].base for number in picked}


def _told(index: object, told: Callable[[Varying], str | None]) -> str | None:
    """An index as Python text; None where a number in it cannot be said."""
    if isinstance(index, tuple):
        parts = [_told(part, told) for part in cast("tuple[object, ...]", index)]
        said = [part for part in parts if part is not None]
        return f"{', '.join(said)}{',' if len(said) == 1 else ''}" if len(said) == len(parts) else None
    if isinstance(index, Varying):
        return told(index)
    if isinstance(index, slice):
        whole = cast("slice[object, object, object]", index)
        start, stop = ("" if end is None else repr(end) for end in (whole.start, whole.stop))
        return f"{start}:{stop}" + ("" if whole.step is None else f":{whole.step!r}")
    return "..." if index is Ellipsis else repr(index)

"""How a unit names the numbers that vary from call to call: by expressions of what the function has before it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from mugraph.ir.numbers import number_expression
from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.record_values import refs
from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Event, Loaded, Record
from mugraph.trace.run.varying import Varying, text_of

_NARROW = "f16"
"""Beside it PyTorch takes a number that is too small for it as 0."""


def number_names(
    scope: Scope,
    unit: Unit,
    events: Sequence[Event],
    paths: Paths,
    consumed: Mapping[int, Record | None],
    names: Mapping[int, str],
) -> dict[int, str]:
    """Expressions of the numbers that the unit is given, by their value numbers. One that has none is left out.

    names: expressions of the tensors that it is given
    """
    varying = {number: scope.tape.varying[number] for number in consumed if number in scope.tape.varying}
    like = next((names[number] for number in consumed if number in names and number not in varying), None)
    if not varying or like is None:
        return {}
    told = told_before(unit, events, paths)
    found: dict[int, str] = {}
    for number, value in varying.items():
        if (text := told(value)) is not None:
            found[number] = number_expression(text, like, _is_narrow(scope, number, events))
    return found


def told_before(unit: Unit, events: Sequence[Event], paths: Paths) -> Callable[[Varying], str | None]:
    """Says a number that varies as Python text, of what the function has before the unit; None where that has none."""
    step = unit.activation.steps[unit.first]
    known: dict[int, str] = {}
    for name, value in step.names.items():
        if isinstance(value, Varying):
            known.setdefault(id(value), name)
    for event in events:
        if isinstance(event, Loaded) and isinstance(event.value, Varying) and (base := paths.get(event.base)):
            suffix = event.name if event.name.startswith("[") else f".{event.name}"
            known.setdefault(id(event.value), f"{base}{suffix}")
    since = math.inf if _binds_inside(unit) else step.at
    return lambda value: text_of(value, known, since)


def _binds_inside(unit: Unit) -> bool:
    """Whether the statement around an expression binds a name in it: then what was computed there before the expression
    is not told from what it computes."""
    if unit.expression is None:
        return False
    return any(isinstance(node, ast.NamedExpr) for one in unit.statements for node in ast.walk(one))


def _is_narrow(scope: Scope, number: int, events: Iterable[Event]) -> bool:
    read = (refs(event) for event in events if isinstance(event, Record) and number in refs(event))
    return any(scope.values.infos[one].dtype == _NARROW for some in read for one in some)

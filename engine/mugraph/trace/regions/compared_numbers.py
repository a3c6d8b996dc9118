"""Comparisons of numbers that vary from call to call: a unit is right where each gives what it gave."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.trace.regions.conditions import Conditions
from mugraph.trace.regions.number_names import told_before
from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.replacement_unit import Offence, Unit
from mugraph.trace.run.tape import Compared, Event
from mugraph.trace.run.varying import COMPARISONS, Varying, literal


def results_compared(unit: Unit, events: Sequence[Event], paths: Paths) -> Conditions | Offence:
    """Conditions on the numbers that were compared in the unit, as they are before it."""
    told = told_before(unit, events, paths)
    conditions: Conditions = {}
    for event in events:
        if not isinstance(event, Compared):
            continue
        left, right = (told(one) if isinstance(one, Varying) else literal(one) for one in (event.left, event.right))
        if left is None or right is None:
            site = event.site.within(unit.activation.index)
            step = site.step if site is not None else unit.first
            return Offence(step, "compares a number that may vary, which has no name before")
        text = f"{left} {COMPARISONS[event.operator]} {right}"
        conditions.setdefault(text if event.result else f"not {text}", [])
    return conditions

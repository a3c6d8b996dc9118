"""A replacement unit: what one region may stand for in the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from mugraph.trace.run.tape import Activation, Record
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import exposed_names, loaded_names


@dataclass(frozen=True)
class Offence:
    """Why a unit cannot be a region. step: of the statement at fault."""

    step: int
    reason: str


@dataclass(frozen=True)
class Refused:
    """Why the tensor code around a line is no region, as a sentence about the line says it. function: that it is in"""

    function: str
    reason: str


@dataclass(frozen=True)
class Unit:
    """statements [first, after) of an activation's steps, or the expression evaluated in step `first`."""

    activation: Activation
    first: int
    after: int
    statements: tuple[ast.stmt, ...]
    expression: ast.expr | None


def names_read(unit: Unit) -> set[str]:
    """Names whose values from before the unit it may read."""
    return loaded_names([unit.expression]) if unit.expression is not None else exposed_names(unit.statements)


def step_of(record: Record, unit: Unit) -> int:
    """The unit's step that led to the call."""
    site = record.site.within(unit.activation.index)
    return site.step if site is not None else unit.first


def step_to(unit: Unit, inner: Activation) -> int:
    """The unit's step that led to another activation."""
    site = inner.site.within(unit.activation.index) if inner.site is not None else None
    return site.step if site is not None else unit.first


def line_of(offence: Offence, unit: Unit) -> int:
    """Of the statement at fault, or of the expression."""
    if unit.expression is not None:
        return unit.expression.lineno
    node = unit.activation.steps[offence.step].node
    return max((at for at in unit.statements if number_of(at) <= node), key=number_of).lineno

"""A replacement unit: what one region may stand for in the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.trace.run.tape import Activation, Record
from mugraph.trace.syntax.binding import bound_before_read
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import blocks_of, loaded_names, own_statements, stored_names


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
    """Names whose values from before the unit it may read, on the way that it took."""
    if unit.expression is not None:
        return loaded_names([unit.expression]) - bound_before_read(unit.expression)
    read: set[str] = set()
    stored: set[str] = set()
    for statement in _executed(unit):
        own = _without_blocks(statement)
        for part in own:
            first = bound_before_read(part)
            read |= loaded_names([part]) - first - stored
            stored |= first
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.FunctionDef):
            stored |= stored_names(own)
    return read


def names_bound(unit: Unit) -> set[str]:
    """Names that it binds on the way that it took. Others keep what they have, if anything."""
    return stored_names([node for statement in _executed(unit) for node in _without_blocks(statement)])


def _executed(unit: Unit) -> Iterator[ast.stmt]:
    """The statements of the unit's steps, as they were executed."""
    by_number = {number_of(own): own for statement in unit.statements for own in own_statements(statement)}
    for step in unit.activation.steps[unit.first : unit.after]:
        if step.node in by_number:
            yield by_number[step.node]


def _without_blocks(statement: ast.stmt) -> list[ast.AST]:
    """What a step of the statement evaluates: a compound statement's blocks are steps of their own."""
    if not any(True for _ in blocks_of(statement)):
        return [statement]
    return [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr | ast.withitem)]


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

"""What a unit leaves to the code after it: the names it binds that are read later, and what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import torch

from mugraph.ir.region import Named
from mugraph.trace.regions.replacement_unit import Offence, Unit, names_bound
from mugraph.trace.regions.scope import Scope
from mugraph.trace.syntax.binding import bound_before_read
from mugraph.trace.syntax.nodes import Function, number_of
from mugraph.trace.syntax.statements import read_after, stored_names, tensors_of


def live_outs_of(scope: Scope, unit: Unit, start: int) -> list[Named] | Offence:
    """By the tape's value numbers, in the order of their names, what is returned last. start: the unit's first event"""
    activation = unit.activation
    if unit.expression is not None:
        value = scope.value_of(unit)
        if _binds(scope.function(activation), unit.expression):
            return Offence(unit.first, "binds a name that is read elsewhere")
        return Offence(unit.first, "is no tensor") if value is None else [Named("", value)]
    end = scope.end_of(activation, unit.after, unit.first)
    done = unit.after >= len(activation.steps)
    after = activation.names_at_end if done else activation.steps[unit.after].names
    before = activation.steps[unit.first].names
    last = unit.statements[-1]
    outs: list[Named] = []
    bound = names_bound(unit)
    if outlives := bound & _not_its_own(ast.walk(scope.function(activation))):
        return Offence(_binding_step(unit, min(outlives)), "binds a name of the module, or of a function around it")
    for name in sorted(bound & read_after(scope.function(activation), unit.statements)):
        value = after.get(name)
        if isinstance(value, torch.Tensor):
            outs.append(Named(name, scope.values.number_at(value, end)))
        elif name in after and value is not None and (name not in before or before[name] is not value):
            return Offence(_binding_step(unit, name), "binds something other than a tensor that is read later")
    if isinstance(last, ast.Return):
        if outs:  # a function in it reads the name, and may be called after the return
            return Offence(unit.after - 1, f"returns where {outs[0].expression} is still read")
        returned = [activation.returned[s] for s in range(unit.first, unit.after) if s in activation.returned]
        tensors = tensors_of(last, returned[0]) if len(returned) == 1 else ()
        if not tensors:
            return Offence(unit.after - 1, "returns something other than a tensor")
        outs += [Named("return", scope.values.number_at(tensor, end)) for tensor in tensors]
    return outs


def left_none(scope: Scope, unit: Unit) -> tuple[str, ...]:
    """Names that are None after the unit, and are read later: of tensors that were not asked for."""
    if unit.expression is not None:
        return ()
    activation = unit.activation
    after = activation.names_at_end if unit.after >= len(activation.steps) else activation.steps[unit.after].names
    wanted = names_bound(unit) & read_after(scope.function(activation), unit.statements)
    return tuple(sorted(name for name in wanted if name in after and after[name] is None))


def _binds(function: Function, expression: ast.expr) -> bool:
    """Whether the expression binds a name (`:=`) that other code of the function may read, or that outlives it."""
    bound = stored_names([expression])
    if not bound:
        return False
    inside = {id(node) for node in ast.walk(expression)}
    elsewhere = [node for node in ast.walk(function) if id(node) not in inside]
    read = {node.id for node in elsewhere if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    return not bound.isdisjoint(read | _not_its_own(elsewhere)) or not bound <= bound_before_read(expression)


def _not_its_own(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that `global` or `nonlocal` gives to other scopes: whoever reads them there is not seen here."""
    return {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}


def _binding_step(unit: Unit, name: str) -> int:
    """The last step of the unit that stores the name."""
    found = unit.first
    by_number = {number_of(statement): statement for statement in unit.statements}
    for index in range(unit.first, unit.after):
        statement = by_number.get(unit.activation.steps[index].node)
        if statement is not None and name in stored_names([statement]):
            found = index
    return found

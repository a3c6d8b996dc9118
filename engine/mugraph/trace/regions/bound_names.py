"""What the user's code calls the values a region computes, so that generated code may call them the same."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Activation
from mugraph.trace.syntax.nodes import number_of

_Bound = tuple[str, int]
_NO_NAMES = frozenset({"forward", "__call__", "apply", "checkpoint"})
"""Functions whose names say nothing about their results."""


def bound_names(scope: Scope, unit: Unit, numbers: Mapping[int, int], reads: Collection[str]) -> dict[int, str]:
    """Value number of the region -> the local variable that it is first bound to.

    The unit's own variables count first. Then come the functions that it calls, outermost first. What they return gets
    the name that they are called by ("input_norm" of `self.input_norm(x)`). What they compute gets the name of their
    own variable, unless that name means something else in the unit's function: a callee's `x` is no help beside the
    caller's.

    numbers: the tape's value number -> the region's
    reads:   names the region reads
    """
    named: dict[int, str] = {}
    for name, value in _bindings(scope, unit.activation, unit.first, unit.after):
        if value in numbers:
            named.setdefault(numbers[value], name)
    own = {*named.values(), *reads}
    for inner in called_by(scope, unit):
        for name, value in (*_returned(scope, inner), *_bindings(scope, inner, 0, len(inner.steps))):
            if value in numbers and name not in own:
                named.setdefault(numbers[value], name)
    return named


def called_by(scope: Scope, unit: Unit) -> Iterator[Activation]:
    """The executions of user functions that the unit led to, outer ones first."""
    for inner in scope.tape.activations[unit.activation.index + 1 :]:
        site = inner.site.within(unit.activation.index) if inner.site is not None else None
        if site is not None and unit.first <= site.step < unit.after and _is_within(scope, unit, site.nodes):
            yield inner


def _is_within(scope: Scope, unit: Unit, nodes: Sequence[int]) -> bool:
    """Whether calls that had begun are part of the unit, which may be one expression of its step."""
    if unit.expression is None:
        return True
    first = number_of(unit.expression)
    last = scope.here.numbering.last[first - scope.here.numbering.base] if scope.is_here(unit.activation) else first
    return any(first <= node <= last for node in nodes)


def _returned(scope: Scope, inner: Activation) -> Iterator[_Bound]:
    """The tensor a function returns, by the name it was called by."""
    if inner.site is None or not inner.site.nodes:
        return
    match scope.node(inner.site.nodes[-1]):
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name not in _NO_NAMES:
            for value in inner.returned.values():
                if isinstance(value, torch.Tensor):
                    yield name, scope.values.number_at(value, inner.end)
        case _:
            return


def _bindings(scope: Scope, activation: Activation, first: int, after: int) -> Iterator[_Bound]:
    """Names that steps [first, after) bind to tensors, with the tensors' numbers, in order."""
    if first >= len(activation.steps):
        return
    before = activation.steps[first].names
    for step in range(first + 1, after + 1):
        done = step >= len(activation.steps)
        names = activation.names_at_end if done else activation.steps[step].names
        for name, value in names.items():
            if isinstance(value, torch.Tensor) and before.get(name) is not value and not name.startswith("_"):
                yield name, scope.values.number_at(value, scope.end_of(activation, step))
        before = names

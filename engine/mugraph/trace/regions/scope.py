"""The tape in terms of the source: its functions, statements and expressions, and the events that belong to them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import torch

from mugraph.ir.region import Range, TensorInfo
from mugraph.trace.regions.executions import Item
from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.user_code import UserCode
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.tape import Activation, Event, File, Loaded, Made, Record, Tape
from mugraph.trace.run.values import Values
from mugraph.trace.syntax.nodes import Function, number_of


@dataclass
class Scope:
    """A tape and the source it was recorded from; regions are made in `here`. constants: what some tensors hold."""

    tape: Tape
    values: Values
    here: File
    files: Sequence[File]
    constants: Constants | None = None
    _inner: dict[tuple[int, int], list[Activation]] = field(default_factory=dict[tuple[int, int], list[Activation]])

    def __post_init__(self) -> None:
        for activation in self.tape.activations:
            if activation.site is not None:
                key = (activation.site.activation, activation.site.step)
                self._inner.setdefault(key, []).append(activation)

    @cached_property
    def user_code(self) -> UserCode:
        return UserCode(self.files)

    @cached_property
    def computed(self) -> frozenset[int]:
        """The values that calls of the run have made."""
        made = {n for event in self.tape.events if isinstance(event, Record) for n in event.outputs}
        return frozenset(made | {number for number, one in self.tape.picked.items() if one.base in made})

    def info(self, number: int, lasts: bool | None) -> TensorInfo:
        """What is known of a value.

        lasts: the region finds the value, and it is more than a local of a function. Such a tensor counts as a constant
               if it looks like a mask and a module keeps it: its numbers are looked at again at run time, once for each
               new tensor. (A buffer of nothing but ones may have been learnt.)
        """
        info, tensor = self.values.infos[number], self.values.tensor(number)
        if self.constants is None or self.values.number(tensor) != number:
            return info
        triangle = self.constants.triangle(tensor)
        if triangle is None or lasts is False:
            return info
        if lasts and (triangle.is_uniform or min(info.shape[-2:]) < 2):
            return info
        return replace(info, triangle=triangle)

    def called(self, activation: Activation, step: int) -> Sequence[Activation]:
        """The user functions that a step ran, directly or through library code."""
        return self._inner.get((activation.index, step), ())

    def node(self, number: int) -> ast.AST:
        for file in self.files:
            numbering = file.numbering
            if numbering.base <= number < numbering.base + len(numbering.nodes):
                return numbering.nodes[number - numbering.base]
        raise KeyError(number)

    def function(self, activation: Activation) -> Function:
        return cast(Function, self.node(activation.node))

    @staticmethod
    def body(function: Function) -> Sequence[ast.stmt]:
        """The statements that leave steps."""
        return function.body[ast.get_docstring(function, clean=False) is not None :]

    def is_here(self, activation: Activation) -> bool:
        """Whether its function may be edited: it is in `here` and no wrapper that a decorator puts around others."""
        function = self.function(activation)
        if "." in self.name_of(activation) and function.args.vararg and function.args.kwarg:
            return False
        return self.is_in_file(activation)

    def is_in_file(self, activation: Activation) -> bool:
        numbering = self.here.numbering
        return numbering.base <= activation.node < numbering.base + len(numbering.nodes)

    def name_of(self, activation: Activation) -> str:
        """The qualified name of its function."""
        numbering = self.file_of(activation).numbering
        return numbering.owner[activation.node - numbering.base]

    def file_of(self, activation: Activation) -> File:
        """That its function is in."""
        for file in self.files:
            numbering = file.numbering
            if numbering.base <= activation.node < numbering.base + len(numbering.nodes):
                return file
        raise KeyError(activation.node)

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, torch.Tensor)

    def events(self, activation: Activation) -> Sequence[Event]:
        return self.tape.events[activation.event : activation.end]

    def end_of(self, activation: Activation, after: int, first: int = 0) -> int:
        """The first event after the steps from `first` on and before `after`. What the contexts of a `with` do in the
        end is the last step's inside only where the `with` is among the steps."""
        for begun, event in activation.ended.get(after - 1, ()):
            if begun < first:
                return event
        return activation.steps[after].event if after < len(activation.steps) else activation.end

    def between(self, activation: Activation, first: Item, last: Item | None = None) -> Sequence[Event]:
        start = activation.steps[first.first].event
        return self.tape.events[start : self.end_of(activation, (last or first).after, first.first)]

    def indices(self, unit: Unit) -> Sequence[int]:
        """The events of a unit."""
        activation = unit.activation
        span = range(activation.steps[unit.first].event, self.end_of(activation, unit.after, unit.first))
        if unit.expression is None:
            return span
        first = number_of(unit.expression)
        last = self.here.numbering.last[first - self.here.numbering.base] if self.is_here(activation) else first
        return [index for index in span if self._is_under(self.tape.events[index], unit, first, last)]

    @staticmethod
    def _is_under(event: Event, unit: Unit, first: int, last: int) -> bool:
        site = event.site.within(unit.activation.index)
        if site is None or site.step != unit.first:
            return False
        if isinstance(event, Loaded | Made) and site is event.site and first <= event.node <= last:
            return True
        return any(first <= node <= last for node in site.nodes)

    def under(self, unit: Unit) -> Sequence[Event]:
        return [self.tape.events[index] for index in self.indices(unit)]

    def value_of(self, unit: Unit) -> int | None:
        """The value number of an expression unit, if it is a tensor."""
        assert unit.expression is not None
        return unit.activation.results.get((unit.first, number_of(unit.expression)))

    def range_in(self, activation: Activation, event: Event) -> Range:
        """Of the expression in the activation's function that led to the event."""
        site = event.site.within(activation.index)
        assert site is not None
        numbering = self.here.numbering
        function = activation.node - numbering.base
        for number in (*reversed(site.nodes), activation.steps[site.step].node):
            if activation.node < number <= numbering.last[function]:  # else it is in a lambda made elsewhere
                node = numbering.nodes[number - numbering.base]
                if isinstance(node, ast.expr | ast.stmt):
                    return self.here.source.span(node)
        raise KeyError(site)

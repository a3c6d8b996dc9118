"""The user's functions and classes that a unit ran through, each with an expression that finds it at run time.

A region is computed without them. So it is right as long as nothing has changed: their code, what they read of their
modules and of functions around them, and that nothing else is found in their place.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import FunctionType, ModuleType
from typing import cast

import torch

from mugraph.ir.ran import Code, Ran, joined_members
from mugraph.trace.regions.bound_names import called_by
from mugraph.trace.regions.conditions import Conditions, about
from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.replacement_unit import Offence, Unit, names_read, step_to
from mugraph.trace.regions.scope import Scope
from mugraph.trace.regions.user_code import (
    UserCode,
    definitions_along,
    found,
    global_names,
    helpers_of,
    is_own_of_torch,
    layers_of,
    properties_of,
    underlying,
)
from mugraph.trace.run.tape import Activation, Event, Happening, Loaded, ModuleCalled
from mugraph.trace.syntax.nodes import number_of


@dataclass
class Inlined:
    """
    ran:        the name by which guards call a class or function -> its code
    outside:    names of the region's own module that it reads and that hold what is a library's (`Code.outside`)
    called:     functions of libraries other than PyTorch that ran, by dotted names
    conditions: what must stay true of what the functions read, and that they are still what is there
    """

    ran: dict[str, Ran] = field(default_factory=dict[str, Ran])
    outside: dict[str, str] = field(default_factory=dict[str, str])
    called: set[str] = field(default_factory=set[str])
    conditions: Conditions = field(default_factory=dict[str, list[str]])


class Unfound(Exception):
    """A function ran that no expression leads to; the message is the end of a sentence: "runs …"."""


def inlined(scope: Scope, unit: Unit, paths: Paths, events: list[Event], here: str) -> Inlined | Offence:
    """Adds to `paths` what the functions read. here: an expression for the live-ins' device"""
    look = _Look(scope, unit, paths, here)
    look.own_names()
    look.found.called |= {event.name for event in events if isinstance(event, Happening) and found(event.name)}
    waiting = look.all_of(called_by(scope, unit), events)
    for event in events:
        if isinstance(event, ModuleCalled):
            try:
                look.module(event.module, event.method)
            except Unfound as error:
                return Offence(unit.first, str(error))
    # What a decorator puts around a function is found with that function, which runs after it; what a table has, when
    # it is known who reads the table
    while waiting:
        left = look.all_of([inner for inner, _ in waiting], events)
        if len(left) == len(waiting):
            inner, error = left[0]
            return Offence(step_to(unit, inner), str(error))
        waiting = left
    return look.found


_OF_MODULES = frozenset(torch.nn.Module().__dict__)
"""Attributes that every module has."""


class _Look:
    def __init__(self, scope: Scope, unit: Unit, paths: Paths, here: str) -> None:
        self.scope, self.unit, self.paths, self.here = scope, unit, paths, here
        self.user: UserCode = scope.user_code
        self.found = Inlined()
        self._done: set[int] = set()  # nodes of functions whose names were looked at
        self._around: set[int] = set()  # nodes of functions that a decorator has put around others
        self._own: dict[type, set[str]] = {}  # attributes that objects of a class have themselves
        self._spans: list[tuple[int, int]] = []  # nodes behind the first and up to the second are looked at already
        self._functions: dict[int, str] = {}  # node of a function -> an expression for it
        self._seen = 0  # of `paths.kept`
        roots = unit.statements if unit.expression is None else (unit.expression,)
        self._spans += [(first - 1, last) for first, last in map(self._span, roots)]

    # -- names

    def own_names(self) -> None:
        """Globals that the unit's own text reads."""
        activation = self.unit.activation
        for name in sorted(names_read(self.unit) - activation.steps[self.unit.first].names.keys()):
            if name not in activation.globals:
                if hasattr(builtins, name):
                    self.found.outside[name] = ""
                continue  # else a comprehension's own
            value = activation.globals[name]
            if (known := self.user.named(value)) is not None:
                self.found.outside[name] = known
                if self.user.lends(value):
                    self.paths.add([(f"_here[{name!r}]", value)])
            elif self.user.owns(value):
                self._met(f"_here[{name!r}]", value)
            else:
                self._met(name, value)

    def loaded(self, event: Loaded) -> None:
        """What is read of one of the user's modules, `config.EPS`, or of a table that a class keeps."""
        base = self.paths.get(event.base)
        if base is None:
            return
        if isinstance(event.base, ModuleType):
            if self.user.owns(event.base):
                self._met(f"{base}.{event.name}", event.value)
        elif event.name.isidentifier() and type(table := event.value) is dict:
            self.paths.add([(f"{base}.{event.name}", cast("object", table))])

    def _met(self, expression: str, value: object) -> None:
        """Adds what a function reads that was there before it."""
        if isinstance(value, torch.device):
            return  # region_devices.py decides on those
        self.paths.add([(expression, value)])
        if isinstance(value, FunctionType) and self.user.owns(value):
            if value.__name__ == "<lambda>":  # runs without leaving an activation
                self._function(expression, value)
        elif isinstance(value, type):
            self.found.conditions.setdefault(f"{expression}.__qualname__", [repr(value.__qualname__)])
        elif not isinstance(value, ModuleType | torch.Tensor):
            about(expression, value, self.found.conditions, self.here)

    # -- functions

    def all_of(self, activations: Iterable[Activation], events: Iterable[Event]) -> list[tuple[Activation, Unfound]]:
        """Those to which no name leads so far. events: of the unit"""
        for event in events:
            if isinstance(event, Loaded):
                self.loaded(event)
        left: list[tuple[Activation, Unfound]] = []
        for inner in activations:
            try:
                self.activation(inner)
            except Unfound as error:
                left.append((inner, error))
        return left

    def activation(self, inner: Activation) -> None:
        """Raises Unfound."""
        if inner.node in self._around or any(first < inner.node <= last for first, last in self._spans):
            return
        if not self._method(inner):
            self._plain(inner)

    def _plain(self, inner: Activation) -> None:
        for value in self.paths.kept[self._seen :]:
            if isinstance(value, FunctionType) and (number := self.user.number(value)) is not None:
                self._functions.setdefault(number, self.paths.expressions[id(value)])
        self._seen = len(self.paths.kept)
        expression = self._functions.get(inner.node)
        function = next((v for v in self.paths.kept if self.paths.get(v) == expression), None) if expression else None
        if isinstance(function, FunctionType) and expression is not None:
            self._function(expression, function)
            return
        for value in self.paths.kept:  # a static method, or one of an object that has no name
            kind = value if isinstance(value, type) else type(value)
            if self.user.owns(kind) and (name := self._name_in(kind, inner.node)) is not None:
                path = self.paths.expressions[id(value)]
                self._registered(kind, path if isinstance(value, type) else f"type({path})", name)
                self._guard(value, kind, path)
                return
        raise Unfound(f"runs {self.scope.name_of(inner)}, to which no name leads from here")

    def _function(self, expression: str, function: FunctionType) -> None:
        code = self.user.code(function)
        if code is None:
            raise Unfound(f"runs {function.__qualname__}, whose code cannot be told apart from other code in its line")
        name = key = self._key(function.__module__, function.__qualname__)
        numbers = count(2)  # of others that are called so: one of the same name, or this one without its decorator
        while self.found.ran.setdefault(key, Ran(function=code)) != Ran(function=code):
            key = f"{name} ({next(numbers)})"
        self.found.conditions.setdefault(f"_runs({expression}, {key!r})", [])
        self._layers(expression, function)

    def _method(self, inner: Activation) -> bool:
        args = self.scope.function(inner).args
        first = next((arg.arg for arg in (*args.posonlyargs, *args.args)), None)
        owner = inner.steps[0].names.get(first) if inner.steps and first is not None else None
        if owner is None or isinstance(owner, torch.Tensor):
            return False
        kind = owner if isinstance(owner, type) else type(owner)
        name = self._name_in(kind, inner.node)
        if name is None:
            return False
        path = self.paths.get(owner)
        place = path if isinstance(owner, type) else f"type({path})"
        if path is None:  # made inside the unit: its class is what has a name
            path = place = self.paths.get(kind)
            owner = kind
        if path is None or place is None:
            return False
        self._registered(kind, place, name)
        self._guard(owner, kind, path)
        return True

    def _name_in(self, kind: type, node: int) -> str | None:
        """The name under which a class, or one of its bases, has the function with this node."""
        for owner in kind.__mro__:
            if owner in (torch.nn.Module, object):
                return None
            for name, raw in vars(owner).items():
                function, _ = underlying(raw)
                if function is not None and self.user.number(function) == node:
                    return name
        return None

    # -- classes

    def module(self, module: torch.nn.Module, method: str | None) -> None:
        """One that was called, or of which a method of PyTorch's own was. Raises Unfound."""
        path = self.paths.get(module)
        if path is None:
            return  # made inside the unit
        kind = type(module)
        if method is not None and not is_own_of_torch(kind):
            for name in helpers_of(next(one for one in kind.__mro__ if is_own_of_torch(one)), method):
                if name not in self._ran(kind).methods:
                    self._registered(kind, f"type({path})", name)
        elif is_own_of_torch(kind):
            self._registered_library(kind)
        elif "forward" not in self._ran(kind).methods:
            self._registered(kind, f"type({path})", "forward")
        self._guard(module, kind, path)

    def _guard(self, owner: object, kind: type, path: str) -> None:
        test = "_is" if isinstance(owner, torch.nn.Module) else "_is_object"
        if isinstance(owner, torch.nn.Module):
            members, own = cast("dict[str, str]", self._ran(kind).members), self._own.setdefault(kind, set())
            own |= owner.__dict__.keys()
            found = {name: "" for name, value in owner.__dict__.items() if value is None and name not in _OF_MODULES}
            for kept in ("_modules", "_parameters", "_buffers"):
                found.update(dict.fromkeys(cast("dict[str, object]", owner.__dict__[kept]), kept))
            joined = joined_members(members, found)
            members.update({name: "" if name in own else kept for name, kept in joined.items()})
        if isinstance(owner, type):
            test = "_unchanged"
        self.found.conditions.setdefault(f"{test}({path}, {self._key(kind.__module__, kind.__qualname__)!r})", [])

    def _ran(self, kind: type) -> Ran:
        key = self._key(kind.__module__, kind.__qualname__)
        is_module = issubclass(kind, torch.nn.Module)
        return self.found.ran.setdefault(key, Ran(is_module=is_module, properties=properties_of(kind)))

    def _registered(self, kind: type, place: str, name: str) -> None:
        """A method of a class of the user's. place: an expression for the class. Raises Unfound."""
        methods = cast("dict[str, tuple[Code, ...]]", self._ran(kind).methods)
        along = definitions_along(kind, name)
        if any(isinstance(raw, functools.cached_property) for raw in along.values()):
            raise Unfound(f"runs {kind.__qualname__}.{name}, which keeps what it computes")
        codes = [self.user.code(raw) for raw in along.values()]
        if not codes or any(code is None for code in codes):
            raise Unfound(f"runs {kind.__qualname__}.{name}, whose code cannot be told")
        methods[name] = tuple(code for code in codes if code is not None)
        for position, raw in along.items():
            self._layers(f"{place}.{name}" if position == 0 else f"{place}.__mro__[{position}].{name}", raw)

    def _registered_library(self, kind: type) -> None:
        key = f"{kind.__module__}.{kind.__qualname__}"
        if key in self.found.ran:
            return
        methods: dict[str, tuple[Code, ...]] = {}
        for name in helpers_of(kind, "forward"):
            codes = [self.user.code(raw) for raw in definitions_along(kind, name).values()]
            methods[name] = tuple(code for code in codes if code is not None)
        self.found.ran[key] = Ran(methods, None, kind.__module__, True, properties=properties_of(kind))

    def _key(self, module: str, qualname: str) -> str:
        """Plain where the region's file has it."""
        return qualname if module == self.unit.activation.globals.get("__name__") else f"{module}.{qualname}"

    # -- what functions read

    def _layers(self, expression: str, raw: object) -> None:
        """What a function reads, and what is read by those that decorators put around it."""
        for suffix, function in layers_of(raw):
            if self.user.owns(function):
                self._names(expression + suffix, function)
                if "__wrapped__" in function.__dict__ and (number := self.user.number(function)) is not None:
                    self._around.add(number)

    def _names(self, expression: str, function: FunctionType) -> None:
        """Globals and variables of functions around it that a function reads. expression: for the function itself"""
        node = self.user.node(function.__code__)
        if node is None or number_of(node) in self._done:
            return
        self._done.add(number_of(node))
        self._spans.append(self._span(node))
        for name in sorted(global_names(node)):
            for read, value in self._read(expression, function, name):
                in_closure = read.endswith(".cell_contents")
                if self.user.named(value) is not None and not in_closure:
                    self.paths.add([(read, value)] if self.user.lends(value) else [])
                elif in_closure and self.user.lends(function) and not isinstance(value, FunctionType):
                    self.paths.add([(read, value)])  # what a library's decorator was given stays what it is
                else:
                    self._met(read, value)

    def _read(self, expression: str, function: FunctionType, name: str) -> Iterator[tuple[str, object]]:
        if name in function.__code__.co_freevars:
            position = function.__code__.co_freevars.index(name)
            cell = (function.__closure__ or ())[position]
            if name != "__class__":
                yield f"{expression}.__closure__[{position}].cell_contents", cell.cell_contents
        elif name in function.__globals__:
            yield f"{expression}.__globals__[{name!r}]", function.__globals__[name]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        number = number_of(node)
        for file in self.scope.files:
            at = number - file.numbering.base
            if 0 <= at < len(file.numbering.nodes):
                return number, file.numbering.last[at]
        raise KeyError(number)

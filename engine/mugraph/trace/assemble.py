"""One replacement unit as a region: its calls, what it reads and binds, and what must hold for it to stay right."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch

from mugraph.trace.bound_names import bound_names, called_by
from mugraph.trace.constants import Constants
from mugraph.trace.guards import Conditions, conditions_of
from mugraph.trace.instrument import Function, number_of
from mugraph.trace.paths import Paths
from mugraph.trace.region import Argument, Call, Named, Range, Ref, Region, TensorInfo
from mugraph.trace.statements import (
    Item,
    exposed_names,
    in_own_scope,
    loaded_names,
    read_after,
    stored_names,
    tensors_of,
)
from mugraph.trace.tape import Activation, Event, File, Loaded, Made, Record, Tape
from mugraph.trace.values import Values


@dataclass(frozen=True)
class Offence:
    """Why a unit cannot be a region. step: of the statement at fault."""

    step: int
    reason: str


@dataclass(frozen=True)
class Unit:
    """statements [first, after) of an activation's steps, or the expression evaluated in step `first`."""

    activation: Activation
    first: int
    after: int
    statements: tuple[ast.stmt, ...]
    expression: ast.expr | None


@dataclass(frozen=True)
class Assembled:
    """numbers: the tape's value number -> the region's. conditions: become the region's guards in the end."""

    region: Region
    conditions: Conditions
    unit: Unit
    scope: Scope
    numbers: Mapping[int, int]


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

    def info(self, number: int, lasts: bool | None) -> TensorInfo:
        """What is known of a value. lasts: of one that the region finds, whether it is more than a local of a function.

        Such a tensor counts as a constant where it looks like a mask (a buffer of nothing but ones may have been
        learnt) and is kept by a module: its numbers are looked at again at run time, once for each new tensor.
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
        for file in self.files:
            numbering = file.numbering
            if numbering.base <= activation.node < numbering.base + len(numbering.nodes):
                return numbering.owner[activation.node - numbering.base]
        raise KeyError(activation.node)

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, torch.Tensor)

    def events(self, activation: Activation) -> Sequence[Event]:
        return self.tape.events[activation.event : activation.end]

    def end_of(self, activation: Activation, after: int) -> int:
        """The first event after the steps before `after`."""
        return activation.steps[after].event if after < len(activation.steps) else activation.end

    def between(self, activation: Activation, first: Item, last: Item | None = None) -> Sequence[Event]:
        start = activation.steps[first.first].event
        return self.tape.events[start : self.end_of(activation, (last or first).after)]

    def indices(self, unit: Unit) -> Sequence[int]:
        """The events of a unit."""
        activation = unit.activation
        span = range(activation.steps[unit.first].event, self.end_of(activation, unit.after))
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


def assemble(scope: Scope, unit: Unit) -> Assembled | Offence:
    """The region of a unit whose events are clean."""
    activation = unit.activation
    indices = scope.indices(unit)
    events = [scope.tape.events[index] for index in indices]
    start = indices[0] if unit.expression is not None and len(indices) else activation.steps[unit.first].event
    records = [event for event in events if isinstance(event, Record) and event.outputs]
    produced = {number for record in records for number in record.outputs}
    outs = _live_outs(scope, unit, start)
    if isinstance(outs, Offence):
        return outs
    kept = _needed(records, [out.value for out in outs])
    for record in records:
        if record.writes and not _is_private_write(scope, record, records):
            return Offence(_step(record, unit), "writes in place to a tensor that others can see")
    consumed: dict[int, Record | None] = {}
    for record in kept:
        for number in _refs(record):
            if number not in produced:
                consumed.setdefault(number, record)
    for out in outs:
        if out.value not in produced:
            consumed.setdefault(out.value, None)
    paths = _paths(scope, unit, events)
    names: dict[int, str] = {}
    for expression, tensor in paths.tensors():
        names.setdefault(scope.values.number_at(tensor, start), expression)
    for number, record in consumed.items():
        if number not in names:
            return Offence(unit.first if record is None else _step(record, unit), "reads a tensor that has no name")
    if not consumed:
        return Offence(unit.after - 1, "reads no tensor")
    if _is_aliased(scope, [out.value for out in outs], produced, consumed):
        return Offence(unit.after - 1, "binds a view of a tensor that is written to")
    if any(out.value in _homeless(scope, kept, consumed) for out in outs):
        return Offence(unit.after - 1, "makes a tensor on the default device that is read later")
    read = _names_read(unit)
    snapshot = activation.steps[unit.first].names
    devices = _global_devices(scope, unit, read - snapshot.keys())
    if isinstance(devices, Offence):
        return devices
    conditions = conditions_of(
        events,
        {name: snapshot[name] for name in sorted(read) if name in snapshot} | devices,
        paths,
        {id(scope.values.tensor(number)) for number in consumed},
        f"{names[next(iter(consumed))]}.device",
    )
    new: dict[int, int] = {}
    for number in (*consumed, *(number for record in kept for number in record.outputs)):
        new.setdefault(number, len(new))
    live_ins = [Named(names[number], number) for number in consumed]
    called = bound_names(scope, unit, new, read | {live_in.expression for live_in in live_ins})
    made = {new[number] for record in kept for number in record.outputs}
    called = {number: name for number, name in called.items() if number in made}
    region = _region(scope, unit, kept, new, live_ins, outs, called)
    return Assembled(region, conditions, unit, scope, new)


def _homeless(scope: Scope, records: Sequence[Record], consumed: Iterable[int]) -> set[int]:
    """Values computed from nothing but tensors made on the default device: only a program on that device has them on
    its live-ins' device, where the region makes them."""
    homeless = set(scope.tape.homeless)
    at_home = set(consumed)
    for record in records:
        if any(number in at_home for number in _refs(record)):
            at_home.update(record.outputs)
        elif any(number in homeless for number in _refs(record)):
            homeless.update(record.outputs)
    return homeless


def _global_devices(scope: Scope, unit: Unit, read: Iterable[str]) -> dict[str, object] | Offence:
    """The devices that are globals of the module, by the names the unit, or a function it calls, reads them by."""
    module = unit.activation.globals
    found = {name: module[name] for name in sorted(read) if isinstance(module.get(name), torch.device)}
    for inner in called_by(scope, unit):
        names = loaded_names(scope.function(inner).body)
        for name in sorted(name for name in names if isinstance(inner.globals.get(name), torch.device)):
            if inner.globals is not module or name in unit.activation.steps[unit.first].names:
                return Offence(_own_step(unit, inner), "reads another module's device")
            found[name] = module[name]
    return found


def _region(
    scope: Scope,
    unit: Unit,
    records: Sequence[Record],
    new: Mapping[int, int],
    live_ins: Sequence[Named],
    live_outs: Sequence[Named],
    names: Mapping[int, str],
) -> Region:
    source = scope.here.source
    own = unit.activation.steps[unit.first].names
    found = {live_in.value: live_in.expression not in own for live_in in live_ins}
    first: ast.expr | ast.stmt = unit.expression or unit.statements[0]
    last = unit.expression or unit.statements[-1]
    function = scope.function(unit.activation)
    calls = tuple(
        Call(
            record.target,
            tuple(_renumbered(arg, new) for arg in record.args),
            {name: _renumbered(arg, new) for name, arg in record.kwargs.items()},
            tuple(new[number] for number in record.outputs),
            scope.range_in(unit.activation, record),
        )
        for record in records
    )
    return Region(
        function=scope.name_of(unit.activation),
        range=source.span(first, last),
        unit="statements" if unit.expression is None else "expression",
        text=source.covered(first, last),
        live_ins=tuple(Named(named.expression, new[named.value]) for named in live_ins),
        live_outs=tuple(Named(named.expression, new[named.value]) for named in live_outs),
        calls=calls,
        values={number: scope.info(old, found.get(old)) for old, number in new.items()},
        function_args=arguments_of(function),
        names=names,
    )


def arguments_of(function: Function) -> tuple[str, ...]:
    args = function.args
    named = [*args.posonlyargs, *args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs]
    return tuple(arg.arg for arg in (*named, *([args.kwarg] if args.kwarg else [])))


def _renumbered(argument: Argument, new: Mapping[int, int]) -> Argument:
    if isinstance(argument, Ref):
        return Ref(new[argument.value])
    if isinstance(argument, tuple):
        return tuple(_renumbered(item, new) for item in argument)
    if isinstance(argument, slice):
        start, stop, step = (
            _renumbered(cast(Argument, p), new) for p in (argument.start, argument.stop, argument.step)
        )
        return slice(start, stop, step)
    return argument


def _refs(record: Record) -> Iterator[int]:
    """The values among a record's arguments."""
    stack: list[Argument] = [*reversed((*record.args, *record.kwargs.values()))]
    while stack:
        argument = stack.pop()
        if isinstance(argument, Ref):
            yield argument.value
        elif isinstance(argument, tuple):
            stack.extend(reversed(argument))
        elif isinstance(argument, slice):
            stack.extend(cast(Argument, part) for part in (argument.start, argument.stop, argument.step))


def _step(record: Record, unit: Unit) -> int:
    site = record.site.within(unit.activation.index)
    return site.step if site is not None else unit.first


def _own_step(unit: Unit, inner: Activation) -> int:
    """The unit's step that led to another activation."""
    site = inner.site.within(unit.activation.index) if inner.site is not None else None
    return site.step if site is not None else unit.first


def _needed(records: Sequence[Record], live: Iterable[int]) -> list[Record]:
    wanted = set(live)
    kept: list[Record] = []
    for record in reversed(records):
        if wanted.intersection(record.outputs):
            kept.append(record)
            wanted.update(_refs(record))
    return kept[::-1]


def _live_outs(scope: Scope, unit: Unit, start: int) -> list[Named] | Offence:
    activation = unit.activation
    if unit.expression is not None:
        value = scope.value_of(unit)
        return Offence(unit.first, "is no tensor") if value is None else [Named("", value)]
    end = scope.end_of(activation, unit.after)
    done = unit.after >= len(activation.steps)
    after = activation.names_at_end if done else activation.steps[unit.after].names
    before = activation.steps[unit.first].names
    last = unit.statements[-1]
    outs: list[Named] = []
    wanted = read_after(scope.function(activation), unit.statements)
    for name in sorted(stored_names(unit.statements) & wanted):
        value = after.get(name)
        if isinstance(value, torch.Tensor):
            outs.append(Named(name, scope.values.number_at(value, end)))
        elif name in after and (name not in before or before[name] is not value):
            return Offence(_binding_step(unit, name), "binds something other than a tensor that is read later")
    if isinstance(last, ast.Return):
        returned = [activation.returned[s] for s in range(unit.first, unit.after) if s in activation.returned]
        tensors = tensors_of(last, returned[0]) if len(returned) == 1 else ()
        if not tensors:
            return Offence(unit.after - 1, "returns something other than a tensor")
        outs += [Named("return", scope.values.number_at(tensor, end)) for tensor in tensors]
    return outs


def _binding_step(unit: Unit, name: str) -> int:
    """The last step of the unit that stores the name."""
    found = unit.first
    by_number = {number_of(statement): statement for statement in unit.statements}
    for index in range(unit.first, unit.after):
        statement = by_number.get(unit.activation.steps[index].node)
        if statement is not None and name in stored_names([statement]):
            found = index
    return found


def _is_private_write(scope: Scope, record: Record, records: Sequence[Record]) -> bool:
    """Whether a write in place is only a renaming: of a tensor made here, that shares its storage with no other."""
    for old, _ in record.writes:
        if len(scope.values.objects(old)) != 1:
            return False
        storage = scope.values.storage(old)
        made_here = any(
            scope.values.storage(number) == storage and not other.writes
            for other in records
            for number in other.outputs
        )
        if not made_here:
            return False
    return True


def _is_aliased(scope: Scope, outs: Iterable[int], produced: set[int], consumed: Iterable[int]) -> bool:
    """Whether an output shares storage with an input and the program writes there: a copy would not follow."""
    inputs = {scope.values.storage(number) for number in consumed}
    return any(scope.values.storage(out) in inputs and out in produced and scope.values.is_written(out) for out in outs)


def _names_read(unit: Unit) -> set[str]:
    return loaded_names([unit.expression]) if unit.expression is not None else exposed_names(unit.statements)


_HOLDERS = (list, tuple, dict, torch.nn.ParameterList, torch.nn.ModuleList)


def _paths(scope: Scope, unit: Unit, events: Sequence[Event]) -> Paths:
    """Expressions for what the function could name before the unit; what the unit itself says comes first."""
    activation = unit.activation
    snapshot = {name: value for name, value in activation.steps[unit.first].names.items() if name.isidentifier()}
    stored = set[str]() if unit.expression is not None else stored_names(unit.statements)
    nodes: Sequence[ast.AST] = unit.statements if unit.expression is None else [unit.expression]
    own = {number_of(node): node for root in nodes for node in in_own_scope(root) if isinstance(node, ast.expr)}
    said: list[tuple[str, object]] = []
    for event in events:
        if isinstance(event, Loaded) and event.site.activation == activation.index:
            node = own.get(event.node)
            if node is not None and _is_path(node) and not (loaded_names([node]) & stored):
                said.append((ast.unparse(node), event.value))
    used = loaded_names(nodes)
    ordered = sorted(snapshot.items(), key=lambda named: named[0] not in used)  # stable: arguments come first
    outside: list[tuple[str, object]] = [
        (name, value)
        for name, value in activation.globals.items()
        if name not in snapshot
        and name.isidentifier()
        and (isinstance(value, torch.Tensor) or (name in used and type(value) in _HOLDERS))
    ]
    return Paths.of([*ordered, *said, *outside])


def _is_path(node: ast.expr) -> bool:
    """A name followed by attributes and subscripts without calls."""
    if isinstance(node, ast.Attribute):
        return _is_path(node.value)
    if isinstance(node, ast.Subscript):
        return _is_path(node.value) and all(
            isinstance(part, ast.Name | ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
                       | ast.expr_context)
            for part in ast.walk(node.slice)
        )  # fmt: skip
    return isinstance(node, ast.Name)

"""One replacement unit as a region: its calls, what it reads and binds, and what must hold for it to stay right."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mugraph.ir.calls import renumbered
from mugraph.ir.region import Call, Named, Region
from mugraph.trace.regions.as_it_was import changed_later
from mugraph.trace.regions.bound_names import bound_names
from mugraph.trace.regions.changing import changing
from mugraph.trace.regions.compared_numbers import results_compared
from mugraph.trace.regions.conditions import Conditions
from mugraph.trace.regions.counted import without_counted
from mugraph.trace.regions.defaults import defaults_of
from mugraph.trace.regions.guards import conditions_of
from mugraph.trace.regions.inlined import inlined
from mugraph.trace.regions.known import without_found
from mugraph.trace.regions.live_outs import left_none, live_outs_of
from mugraph.trace.regions.loop_parts import loop_parts, names_without
from mugraph.trace.regions.number_names import number_names
from mugraph.trace.regions.picked_names import picked_from, picked_names
from mugraph.trace.regions.positions import moving
from mugraph.trace.regions.record_values import needed, refs
from mugraph.trace.regions.region_devices import asked_of_devices, global_devices, homeless_values
from mugraph.trace.regions.replacement_unit import Offence, Unit, names_read, step_of
from mugraph.trace.regions.scope import Scope
from mugraph.trace.regions.seen_elsewhere import is_aliased, is_private_write
from mugraph.trace.regions.stored_last import stored_last
from mugraph.trace.regions.unit_paths import paths_of
from mugraph.trace.regions.unsure_names import unsure_of
from mugraph.trace.run.tape import Loaded, Record
from mugraph.trace.syntax.nodes import Function


@dataclass(frozen=True)
class Assembled:
    """numbers: the tape's value number -> the region's. conditions: become the region's guards in the end. kept: the
    tensors it reads that were there before the run, as weights. others: units in which the same was done. stores: the
    region's number of a tensor after it was written to last of all -> the tape's"""

    region: Region
    conditions: Conditions
    unit: Unit
    scope: Scope
    numbers: Mapping[int, int]
    kept: frozenset[int] = frozenset()
    others: list[Unit] = field(default_factory=list[Unit])
    stores: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def units(self) -> Sequence[Unit]:
        return [self.unit, *self.others]

    @property
    def times(self) -> int:
        return 1 + len(self.others)


def assemble(scope: Scope, unit: Unit) -> Assembled | Offence:
    """The region of a unit whose events are clean."""
    activation = unit.activation
    indices = scope.indices(unit)
    events = [scope.tape.events[index] for index in indices]
    start = indices[0] if unit.expression is not None and len(indices) else activation.steps[unit.first].event
    records = [event for event in events if isinstance(event, Record) and event.outputs]
    produced = {number for record in records for number in record.outputs}
    outs = live_outs_of(scope, unit, start)
    if isinstance(outs, Offence):
        return outs
    if (step := _on_a_shared_line(scope, unit, outs)) is not None:
        return Offence(step, "shares its line with other code")
    left = [out.value for out in outs]
    visible = [record for record in records if record.writes and not is_private_write(scope, record, records, left)]
    first_write = next(iter(visible), None)
    stores: dict[int, int] = {}
    if late := [record for record in visible if not record.in_place]:
        stored = stored_last(scope, records, late, indices[-1] + 1)
        if isinstance(stored, Record):
            return Offence(step_of(stored, unit), "writes in place to a tensor that others can see")
        records, stores = stored.records, stored.stores
        visible = [record for record in records if record in visible or not stores.keys().isdisjoint(record.outputs)]
        produced = {number for record in records for number in record.outputs}
    kept = needed(records, left, [number for record in visible for number in record.outputs])
    kept = [replace(record, target=record.in_place) if record in visible else record for record in kept]
    if visible and not outs and not stores:
        return Offence(unit.after - 1, "computes nothing but what it writes to parts of tensors")
    parts = loop_parts(scope, unit, kept, produced)
    if parts:
        produced -= parts.keys()
        rest = [record for record in kept if parts.keys().isdisjoint(record.outputs)]
        kept = needed(rest, left, [n for record in visible for n in record.outputs])
    consumed: dict[int, Record | None] = {}
    for record in kept:
        for number in refs(record):
            if number not in produced:
                consumed.setdefault(number, record)
    for out in outs:
        if out.value not in produced:
            consumed.setdefault(out.value, None)
    paths = paths_of(scope, unit, events)
    names = {number: ast.unparse(node) for number, node in parts.items()}
    for expression, tensor in paths.tensors():
        names.setdefault(scope.values.number_at(tensor, start), expression)
    picked = picked_names(scope, unit, events, paths, consumed, names)
    if isinstance(picked, Offence):
        return picked
    consumed = {n: consumed[n] for n in sorted(consumed, key=picked.keys().__contains__)}  # these last
    names |= picked
    numbers = number_names(scope, unit, events, paths, consumed, names)
    names |= numbers
    for number, record in consumed.items():
        if number not in names:
            return Offence(unit.first if record is None else step_of(record, unit), "reads a tensor that has no name")
    if not consumed.keys() - numbers.keys():
        return Offence(unit.after - 1, "reads no tensor")
    if is_aliased(scope, left, produced, consumed):
        return Offence(unit.after - 1, "binds a view of a tensor that is written to")
    if any(out.value in homeless_values(scope, kept, consumed) for out in outs):
        return Offence(unit.after - 1, "makes a tensor on the default device that is read later")
    here = f"{names[next(number for number in consumed if number not in numbers)]}.device"
    if (changed := changing(scope, unit)) is not None:
        return changed
    inside = inlined(scope, unit, paths, events, here)
    if isinstance(inside, Offence):
        return inside
    read = names_without(unit, parts, names_read(unit)) if parts else names_read(unit)
    snapshot = activation.steps[unit.first].names
    if changed_later((snapshot.get(name) for name in read), events, scope.tape.events, start):
        return Offence(unit.first, "reads a list or dict that the program changes later")
    loaded = (event.value for event in events if isinstance(event, Loaded))
    if any(isinstance(value, Iterator) for value in (*loaded, *(snapshot.get(name) for name in read))):
        return Offence(unit.first, "reads from an iterator, with which other code may go on")
    devices = global_devices(scope, unit, read - snapshot.keys())
    if isinstance(devices, Offence):
        return devices
    conditions = conditions_of(
        events,
        {name: snapshot[name] for name in sorted(read) if name in snapshot} | devices,
        paths,
        {id(scope.values.tensor(number)): names[number] for number in (*consumed, *picked_from(scope, events, picked))},
        here,
    )
    results = results_compared(unit, events, paths)
    if isinstance(results, Offence):
        return results
    conditions |= results
    if (write := moving(visible, conditions)) is not None:
        return Offence(step_of(write, unit), "writes to a place that a number says, which may be another one next time")
    conditions |= defaults_of(scope, kept, events, here) | asked_of_devices(events, here)
    conditions = inside.conditions | {k: v for k, v in conditions.items() if k not in inside.conditions}
    if unsure := unsure_of(scope, unit, [*conditions, *(names[number] for number in consumed)], first_write):
        return Offence(unit.first, f"reads {unsure[0]}, which has no value yet on other ways to this line")
    new: dict[int, int] = {}
    for number in (*consumed, *(number for record in kept for number in record.outputs)):
        new.setdefault(number, len(new))
    live_ins = [Named(names[number], number) for number in consumed]
    called = bound_names(scope, unit, new, read | {live_in.expression for live_in in live_ins})
    made = {new[number] for record in kept for number in record.outputs}
    called = {number: name for number, name in called.items() if number in made}
    region = replace(
        _region(scope, unit, kept, new, live_ins, outs, called),
        ran=inside.ran,
        outside=inside.outside,
        called=tuple(sorted(inside.called)),
        left_none=left_none(scope, unit),
        stored=frozenset(new[number] for number in stores.values()),
    )
    weights = frozenset(consumed.keys() - scope.computed)
    last = {new[after]: after for after in stores}
    return Assembled(region, conditions, unit, scope, new, weights, stores=last)


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
            tuple(renumbered(arg, new) for arg in record.args),
            {name: renumbered(arg, new) for name, arg in record.kwargs.items()},
            tuple(new[number] for number in record.outputs),
            scope.range_in(unit.activation, record),
            record.tf32,
        )
        for record in records
    )
    values = {number: scope.info(old, found.get(old)) for old, number in new.items()}
    return Region(
        function=scope.name_of(unit.activation),
        range=source.span(first, last),
        unit="statements" if unit.expression is None else "expression",
        text=source.covered(first, last),
        live_ins=tuple(Named(named.expression, new[named.value]) for named in live_ins),
        live_outs=tuple(Named(named.expression, new[named.value]) for named in live_outs),
        calls=calls,
        values=without_counted(calls, without_found(calls, values, [new[live_in.value] for live_in in live_ins])),
        function_args=arguments_of(function),
        names=names,
    )


def _on_a_shared_line(scope: Scope, unit: Unit, live_outs: Sequence[Named]) -> int | None:
    """The step of a statement that shares its line with other code. None where none does, or the unit is one statement
    of which the value alone can be replaced."""
    if unit.expression is not None:
        return None
    before, after = scope.here.source.beside(unit.statements[0], unit.statements[-1])
    match unit.statements:
        case [ast.Return(ast.expr() as value)]:
            bound = ["return"]
        case [ast.Assign(targets, value)]:
            bound = [ast.unparse(target) for target in targets]
        case _:
            bound, value = list[str](), None
    names = [out.expression for out in live_outs]
    if not (before or after) or (bound == names and not isinstance(value, ast.Tuple | ast.List)):
        return None
    return unit.first if before else unit.after - 1


def arguments_of(function: Function) -> tuple[str, ...]:
    args = function.args
    named = [*args.posonlyargs, *args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs]
    return tuple(arg.arg for arg in (*named, *([args.kwarg] if args.kwarg else [])))

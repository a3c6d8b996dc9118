"""Devices that a region does not get from its live-ins: the default device, and devices that are globals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from mugraph.trace.regions.bound_names import called_by
from mugraph.trace.regions.conditions import Conditions
from mugraph.trace.regions.record_values import refs
from mugraph.trace.regions.replacement_unit import Offence, Unit, step_to
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.gpu_answers import GPU, TOLD
from mugraph.trace.run.tape import Event, Happening, Record
from mugraph.trace.syntax.statements import loaded_names


def homeless_values(scope: Scope, records: Sequence[Record], consumed: Iterable[int]) -> set[int]:
    """Values computed from nothing but tensors made on the default device. The region makes these on its live-ins'
    device, which is right only in a program whose default device that is."""
    homeless = set(scope.tape.homeless)
    at_home = set(consumed)
    for record in records:
        if any(number in at_home for number in refs(record)):
            at_home.update(record.outputs)
        elif any(number in homeless for number in refs(record)):
            homeless.update(record.outputs)
    return homeless


def asked_of_devices(events: Iterable[Event], here: str) -> Conditions:
    """What must hold where code was told that a tensor is on the GPU. here: an expression for the live-ins' device"""
    told = any(isinstance(event, Happening) and event.name == TOLD for event in events)
    return {f"{here}.type": [repr(GPU)]} if told else {}


def global_devices(scope: Scope, unit: Unit, read: Iterable[str]) -> dict[str, object] | Offence:
    """The devices that are globals of the module, by the names the unit, or a function it calls, reads them by."""
    module = unit.activation.globals
    found = {name: module[name] for name in sorted(read) if isinstance(module.get(name), torch.device)}
    for inner in called_by(scope, unit):
        names = loaded_names(scope.function(inner).body)
        for name in sorted(name for name in names if isinstance(inner.globals.get(name), torch.device)):
            if inner.globals is not module or name in unit.activation.steps[unit.first].names:
                return Offence(step_to(unit, inner), "reads another module's device")
            found[name] = module[name]
    return found

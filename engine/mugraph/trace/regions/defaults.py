"""What a region takes from PyTorch's defaults: the type and the device of tensors that it makes from numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mugraph.trace.pytorch.callables import DEFAULT_TYPE
from mugraph.trace.regions.conditions import Conditions
from mugraph.trace.regions.record_values import refs
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Event, Happening, Record


def defaults_of(scope: Scope, records: Sequence[Record], events: Sequence[Event], here: str) -> Conditions:
    """Guards on PyTorch's defaults, for records that depend on one, and for code that asks for the type.

    here: an expression for the live-ins' device. A tensor without dimensions may be on another device than the rest.
    """
    conditions: Conditions = {}
    infos = scope.values.infos
    made = {number for record in records for number in record.outputs} & scope.tape.homeless
    if any(infos[number].shape for number in made):
        conditions[f"_on_default_device({here})"] = []
    asked = any(isinstance(event, Happening) and event.name == DEFAULT_TYPE for event in events)
    if asked or any(_takes_type(scope, record) for record in records):
        conditions[f"_default_type({str(torch.get_default_dtype())!r})"] = []
    return conditions


def _takes_type(scope: Scope, record: Record) -> bool:
    """Whether the call makes floats of something else: of numbers, whole numbers or truth values."""
    infos = scope.values.infos
    made = any(_is_float(infos[number].dtype) for number in record.outputs)
    return made and "dtype" not in record.kwargs and not any(_is_float(infos[n].dtype) for n in refs(record))


def _is_float(kind: str) -> bool:
    return kind.startswith(("f", "bf", "c"))

"""Search units straight from recorded calls, as a cut makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from mugraph.ir.region import Call, Named, Region, SearchUnit, TensorInfo
from mugraph.units.lower import lower
from mugraph.units.part_views import PartViews

from tests.engine.ops.harness import NOWHERE, record


def unit_of(
    calls: Sequence[Call], values: Mapping[int, TensorInfo], live_ins: Sequence[Named], outputs: Sequence[int]
) -> SearchUnit:
    """One unit of all the calls. Raises NotLowerable."""
    lowered = lower(calls, values, live_ins, outputs, "unit")
    region = Region("f", NOWHERE, "statements", "", tuple(live_ins), (), tuple(calls), values)
    views = PartViews(region)
    parts = {name: views.of(view, calls[0]) for name, view in lowered.views.items()}
    made = dict.fromkeys(number for numbers in parts.values() for number in numbers)
    inputs = {name: parts[name][-1] if name in parts else value for name, value in lowered.inputs.items()}
    unit = SearchUnit(
        lowered.program,
        inputs,
        lowered.outputs,
        tuple(calls),
        lowered.origins,
        views=tuple(views.calls[number] for number in made),
        view_values={number: views.values[number] for number in made},
        viewed={view.value: values[view.value] for view in lowered.views.values()},
    )
    return replace(unit, values=unit.known({**values, **unit.view_values}))


def unit_from(fn: Callable[..., Any], **inputs: torch.Tensor) -> SearchUnit:
    """What a function calls."""
    region = record(fn, inputs)
    return unit_of(region.calls, region.values, region.live_ins, [live.value for live in region.live_outs])

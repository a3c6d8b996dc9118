"""The PyTorch function that somebody's kernel stands beside, whole: as one tensor program, with its tensors as the
function has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.ir.calls import TensorInfo
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit, Trace
from mugraph.trace.regions.value_names import value_names
from mugraph.units.joining import units
from mugraph.units.lower import Duplicated, NotLowerable, lower


@dataclass(frozen=True)
class Beside:
    """outputs: of the program, in the order in which the function returns them. seen: of its tensors, whose dimensions
    the program may have joined"""

    program: TensorProgram
    outputs: tuple[str, ...]
    seen: Mapping[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])


def beside(trace: Trace, name: str) -> Beside | str:
    """Of the function, or one sentence saying why there is none."""
    if trace.errors:
        return trace.errors[0]
    regions = [region for region in trace.regions if region.status is None]
    if len(regions) == 1 and len(trace.regions) == 1:
        whole = _whole(regions[0], name)
        if whole is not None:
            return whole
    program = sole_program(trace, name)
    if isinstance(program, str):
        return program
    return Beside(program, tuple(tensor.name for tensor in program.outputs.values()))


def _whole(region: Region, name: str) -> Beside | None:
    """Of a region that is all that its function does."""
    wanted = [live.value for live in region.live_outs]
    whole = region.live_outs and all(live.expression in ("", "return") for live in region.live_outs)
    if not whole or len(set(wanted)) < len(wanted) or region.dynamic is not None:
        return None
    names = value_names(region)
    short = "".join(letter if letter.isalnum() else "_" for letter in name)
    try:
        found = lower(region.calls, region.values, region.live_ins, wanted, short, names, region.names.keys())
    except (NotLowerable, Duplicated):
        return None
    if found.views:
        return None
    tied = {**found.inputs, **found.outputs}
    seen = {tensor: region.values[value] for tensor, value in tied.items()}
    return Beside(found.program, tuple(found.outputs), seen)


def sole_program(trace: Trace, name: str) -> TensorProgram | str:
    """The function's tensor program, or one sentence saying why there is none."""
    if trace.errors:
        return trace.errors[0]
    found = [piece for region in trace.regions if region.status is None for piece in units(region)]
    programs = [piece.program for piece in found if isinstance(piece, SearchUnit)]
    if len(programs) == 1 and len(found) == 1:
        return programs[0]
    if not programs:
        reasons = [region.reason for region in trace.regions if region.reason]
        return f"{name} has no region that can be verified{f': {reasons[0]}' if reasons else ''}"
    return f"{name} has {len(programs)} parts that can be verified; name the function that is to be compared"

"""The PyTorch function that somebody's kernel stands beside, whole: as one tensor program, with its tensors as the
function has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.ir.calls import TensorInfo
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit, Trace
from mugraph.sizes.search_unit import at_other_sizes
from mugraph.trace.regions.value_names import value_names
from mugraph.units.joining import units
from mugraph.units.lower import Duplicated, NotLowerable, lower


@dataclass(frozen=True)
class Beside:
    """outputs: of the program, in the order in which the function returns them. seen: of its tensors, whose dimensions
    the program may have joined. unit: the calls that the program was lowered from; smaller: at other sizes of a range
    """

    unit: SearchUnit
    outputs: tuple[str, ...]
    seen: Mapping[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])
    smaller: tuple[SearchUnit, ...] = ()

    @property
    def program(self) -> TensorProgram:
        return self.unit.program


def beside(trace: Trace, name: str) -> Beside | str:
    """Of the function, or one sentence saying why there is none."""
    if trace.errors:
        return trace.errors[0]
    regions = [region for region in trace.regions if region.status is None]
    if len(regions) == 1 and len(trace.regions) == 1:
        whole = _whole(regions[0], name)
        if whole is not None:
            return whole
    return sole_unit(trace, name)


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
    unit = SearchUnit(found.program, found.inputs, found.outputs, region.calls, values=region.values)
    return Beside(unit, tuple(found.outputs), seen)


def sole_unit(trace: Trace, name: str) -> Beside | str:
    """The function as one search unit, or one sentence saying why it is none."""
    if trace.errors:
        return trace.errors[0]
    found = [(region, piece) for region in trace.regions if region.status is None for piece in units(region)]
    programs = [(region, piece) for region, piece in found if isinstance(piece, SearchUnit)]
    if len(programs) == 1 and len(found) == 1:
        region, unit = programs[0]
        outputs = tuple(tensor.name for tensor in unit.program.outputs.values())
        return Beside(unit, outputs, smaller=at_other_sizes(unit, region))
    if not programs:
        reasons = [region.reason for region in trace.regions if region.reason]
        return f"{name} has no region that can be verified{f': {reasons[0]}' if reasons else ''}"
    return f"{name} has {len(programs)} parts that can be verified; name the function that is to be compared"

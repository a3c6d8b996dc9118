"""What PyTorch would take for a search unit, by estimate."""

from __future__ import annotations

from mugraph.baseline.cost import baseline
from mugraph.baseline.estimate import Baseline
from mugraph.baseline.launches import launches
from mugraph.ir.calls import are_known
from mugraph.ir.region import Region, SearchUnit
from mugraph.protocol.settings import CompareWith
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.schedules.cost import estimate_library_us, least_us
from mugraph.targets import Target


def pytorch_us(unit: SearchUnit, target: Target) -> Baseline:
    """Of its calls; of its program operator by operator, where nothing is known of what they make."""
    if unit.calls and are_known(unit.calls, unit.values):
        return baseline(unit.calls, unit.values, set(unit.outputs.values()), target)
    library = estimate_library_us(unit.program, target)
    return Baseline(library, library)


def library_us(unit: SearchUnit, target: Target, compare_with: CompareWith) -> float:
    """What a kernel has to be faster than."""
    found = pytorch_us(unit, target)
    return found.eager_us if compare_with == "code" else found.best_us


def possible_gain_us(unit: SearchUnit, target: Target, compare_with: CompareWith) -> float:
    """At most, by estimate: were its kernel to take no longer than reading its inputs and writing its outputs."""
    program = unit.program
    moved = bytes_of((*program.tensors, *program.outputs.values()), program.sizes)
    return library_us(unit, target, compare_with) - least_us(moved, target)


def nothing_to_gain(region: Region, target: Target) -> str:
    """Why no kernel is looked for, with what PyTorch would take, one sentence."""
    words = "nothing in it is worth a kernel of its own"
    if not are_known(region.calls, region.values):
        return words
    count = len(launches(region.calls, region.values))
    us = baseline(region.calls, region.values, {live.value for live in region.live_outs}, target).eager_us
    return f"{words}: PyTorch runs it as {count} kernel{'s' if count != 1 else ''}, estimated at {us:.1f} µs"

"""What PyTorch would take for a search unit, by estimate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.baseline.cost import baseline, turned_us
from mugraph.baseline.estimate import Baseline
from mugraph.baseline.launches import launches
from mugraph.ir.calls import Call, TensorInfo, are_known, operands
from mugraph.ir.ranges import Point
from mugraph.ir.region import Region, SearchUnit
from mugraph.protocol.settings import CompareWith
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.schedules.cost import estimate_library_us, least_us
from mugraph.solve.telling import Place
from mugraph.targets import Target
from mugraph.units.grouped_heads import Grouped, as_written
from mugraph.units.layouts import as_recorded, usual_and_turned
from mugraph.units.ranged import calls_at, values_at
from mugraph.units.whole_last import as_the_code_has


def written_us(region: Region, unit: SearchUnit, target: Target) -> Baseline:
    """Of its calls as the user's code has them. region: of the unit, with all its values"""
    if region.relaid is None:
        return pytorch_us(unit, target)
    calls = as_the_code_has(region, unit.calls)
    of, values = region.relaid.of, {**region.values, **unit.values}
    return baseline(calls, values, {of.get(value, value) for value in unit.outputs.values()}, target)


def pytorch_us(unit: SearchUnit, target: Target) -> Baseline:
    """Of its calls as they are made beside kernels; of its program operator by operator, where nothing is known of
    what they make."""
    if unit.calls and are_known(unit.calls, unit.values):
        return baseline(unit.calls, unit.values, set(unit.outputs.values()), target)
    library = estimate_library_us(unit.program, target)
    return Baseline(library, library)


def stays_us(region: Region, calls: Sequence[Call], size: Point | None, target: Target) -> Baseline | None:
    """Of the region's calls that PyTorch runs beside the kernels. None for none, and where it is not known what they
    make.

    size: of each range of the region; None for the largest
    """
    calls = [call for call in calls if call.outputs]
    if not calls or not are_known(calls, region.values):
        return None
    values = region.values
    if region.dynamic is not None and size is not None:
        calls, values = calls_at(calls, region.dynamic, size), values_at(region, region.dynamic, size)
    kept = {value for call in calls for value in call.outputs}
    here = {value for call in calls for value in operands(call)}
    others = {value for call in region.calls if kept.isdisjoint(call.outputs) for value in operands(call)}
    return baseline(calls, values, (kept - here) | others | {live.value for live in region.live_outs}, target)


def kept_us(region: Region, calls: Sequence[Call], size: Point | None, target: Target) -> tuple[Baseline, float] | None:
    """Of calls that PyTorch runs beside the kernels: as the user's code has them; and as they are made there. As
    `stays_us`."""
    if copies := _stores(region, calls):
        rest = kept_us(region, [call for call in calls if call not in copies], size, target)
        code, ours = rest or (Baseline(0.0, 0.0), 0.0)
        stored = stays_us(region, copies, size, target)
        return code, ours + (stored.eager_us if stored is not None else 0.0)
    if region.relaid is not None:
        return _kept_relaid_us(region, calls, target)
    usual, turned = usual_and_turned(region, calls)
    values, lying = as_recorded(region.values, turned)
    region = replace(region, values=values)
    written, grouped = as_written(region, usual)
    stays = stays_us(region, written, size, target)
    if stays is None:
        return None
    gains = _turning_gains_us(turned, values, lying, target) + _grouping_gains_us(grouped, values, target)
    return stays, stays.eager_us - gains


def _stores(region: Region, calls: Sequence[Call]) -> list[Call]:
    """The calls that copy to a tensor what it holds in the end. The user's code writes it there at once."""
    after = {call.outputs[0]: operands(call)[0] for call in region.calls if call.target == "Tensor.data.__get__"}
    return [
        call
        for call in calls
        if call.target == "Tensor.copy_" and after.get(operands(call)[0], operands(call)[0]) in region.stored
    ]


def _kept_relaid_us(region: Region, calls: Sequence[Call], target: Target) -> tuple[Baseline, float] | None:
    """As `kept_us`, where the calls read and make values that lie otherwise than recorded, and copies of them."""
    written, _ = as_written(region, as_the_code_has(region, calls))
    stays, made = stays_us(region, written, None, target), stays_us(region.as_made, calls, None, target)
    nothing = Baseline(0.0, 0.0)  # copies alone: the user's code has none
    return None if made is None else (stays or nothing, made.eager_us)


def _grouping_gains_us(grouped: Sequence[Grouped], values: Mapping[int, TensorInfo], target: Target) -> float:
    """What is saved where keys and values are not copied out."""
    return sum(
        baseline(one.written, values, one.call.outputs, target).eager_us
        - baseline([one.call], values, one.call.outputs, target).eager_us
        for one in grouped
    )


def _turning_gains_us(
    calls: Sequence[Call], values: Mapping[int, TensorInfo], lying: Collection[int], target: Target
) -> float:
    """What is saved by convolutions channels last, the copies of their operands counted, but for those that lie so.
    calls: in the usual order"""
    return sum(
        baseline([call], values, call.outputs, target).eager_us - turned_us([call], values, target, lying)
        for call in calls
    )


def compared(place: Place, compare_with: CompareWith) -> CompareWith:
    """What the kernel of a search unit must be faster than to have a place in its region's plan. Beside other units, or
    convolutions that are turned for it, that is what runs there without it: PyTorch's calls. The plan as a whole is
    compared with what the user chose."""
    return "code" if place.units > 1 or place.beside_turned else compare_with


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

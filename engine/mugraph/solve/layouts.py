"""Plans of one region, whose convolutions that PyTorch runs lie differently in memory: the fastest one is kept.

Which one is fastest depends on the library's kernels. Where nothing is measured, the one that is expected to be. Where
something is, the next one is measured as well, but not where it is expected to be much slower than what is offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from mugraph.events import RegionResult
from mugraph.ir.calls import Call
from mugraph.ir.region import Part, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.schedules.cost import least_us
from mugraph.solve.pytorch import kept_us, pytorch_us
from mugraph.targets import Target
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.tune.messages import DIFFERS
from mugraph.units.biases import with_biases_apart, without_biases
from mugraph.units.layouts import FASTER, WHOLE, Layout, Ranks, plain_calls_of, turnable
from mugraph.units.whole_last import channels_last

HOPELESS = 1.2
"""Times as long as what is offered: what is expected to take more is not measured."""


def other_layouts(region: Region) -> Ranks | None:
    """The other choice of single convolutions than the one that is expected to be faster; None where there is nothing
    to choose. Convolutions of which a search unit may have a kernel count as well: one way to divide the region leaves
    them to PyTorch."""
    found = [call for call in region.calls if canonical(call.target) in WINDOW_DIMS]
    left = {call.outputs[0] for call in found if len(call.outputs) == 1}
    apart = with_biases_apart(region, left)
    alone = without_biases(region, apart)
    ranks = {one.rank for one in turnable(apart, left={alone.get(value, value) for value in left})}
    return frozenset(ranks - set(FASTER)) if ranks else None


def layouts(region: Region) -> tuple[Layout, ...]:
    """All choices."""
    other = other_layouts(region)
    return (FASTER, *((WHOLE,) if channels_last(region) is not None else ()), *(() if other is None else (other,)))


def windowed(region: Region, layout: Layout) -> list[frozenset[int]]:
    """What each convolution makes, by the numbers that a cut of this choice has: a cut without kernels for them is
    what choices are compared by."""
    whole = channels_last(region) if layout == WHOLE else None
    calls = region.calls if whole is None else whole.as_made.calls
    return [frozenset(call.outputs) for call in calls if canonical(call.target) in WINDOW_DIMS]


def expected_us(region: Region, parts: Sequence[Part], target: Target) -> float:
    """Of a cut, before anything is searched: kernels without a product as fast as their memory, others as PyTorch's
    calls. Infinite where it is not known."""
    total, plain = 0.0, list[Call]()
    for part in parts:
        calls = plain_calls_of(region, part)
        plain += calls
        if isinstance(part, SearchUnit) and not calls:
            total += _expected_us(part, target)
    kept = kept_us(region, plain, None, target) if plain else None
    if kept is not None:
        return total + kept[1]
    return inf if plain else total


def are_unknown(choices: Iterable[Layout]) -> bool:
    """Whether nothing is known of which one is faster: of three dimensions only some were measured, either way."""
    return any(layout != WHOLE and 3 in layout for layout in choices)


def is_settled(best: RegionResult, layout: Layout, expected: float, of_best: float) -> bool:
    """Whether this choice need not be measured after one that is offered: it is hopeless, or turns nothing. (The
    library may have no kernel for the tensor cores in one of the orders; then the results differ, and it is not
    offered: all others are tried.)

    expected, of_best: microseconds by estimate, of the choice and of the one that is offered
    """
    return best.status == "improved" and (not layout or expected > HOPELESS * of_best)


def is_refused(found: RegionResult) -> bool:
    """Whether what runs is further from float64 than the code."""
    return found.status != "improved" and (found.reason or "").startswith(DIFFERS)


def takes_tf32(part: Part) -> bool:
    """Whether a kernel of it may round to tf32."""
    return isinstance(part, SearchUnit) and any(op.tf32 for op in part.program.ops)


def exactly(part: Part) -> Part:
    """The part, of which no kernel rounds to tf32. PyTorch's calls stay as they are: with few channels cuDNN computes
    in float32 what it may compute in tf32."""
    if not isinstance(part, SearchUnit):
        return part
    ops = tuple(replace(op, tf32="") for op in part.program.ops)
    return replace(part, program=replace(part.program, ops=ops), apart=tuple(map(exactly, part.apart)))


def as_computed(part: Part) -> Part:
    """The part as PyTorch computes it on the device: exactly, where none of its calls takes the tf32 that it may."""
    if not isinstance(part, SearchUnit):
        return part
    part = replace(part, apart=tuple(map(as_computed, part.apart)))
    return exactly(part) if takes_tf32(part) and all(call.exact for call in part.calls if call.tf32) else part


def faster(one: RegionResult, other: RegionResult) -> RegionResult:
    """Of two measured results. The first where neither is offered, or both take as long."""
    return max((one, other), key=gain_of)


def gain_of(result: RegionResult | None) -> tuple[bool, float]:
    """To be compared with others'. Least where there is no result."""
    if result is None:
        return False, 0.0
    return result.status == "improved", result.timing.speedup or 0.0


def _expected_us(unit: SearchUnit, target: Target) -> float:
    program = unit.program
    library = pytorch_us(unit, target).best_us
    if any(op.kind.contracts for op in program.ops):
        return library
    return min(library, least_us(bytes_of((*program.tensors, *program.outputs.values()), program.sizes), target))

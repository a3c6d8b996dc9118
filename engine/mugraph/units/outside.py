"""What of a region is outside of the algebra: calls that no rule gives a meaning, which end the kernels beside them.

A rule may know a call with some arguments and refuse it with others: of products of groups, or of matrices with scales,
PyTorch's own names do not say which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mugraph.ir.calls import Call, is_inplace, operands
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import canonical, entry_for, looks_up
from mugraph.units.lower import NotLowerable, lower


def _is_outside(call: Call) -> bool:
    """Has it no rule? Writes end nothing but their order."""
    return not is_inplace(call) and entry_for(call.target) is None


def _is_refused(call: Call, region: Region) -> bool:
    """Does the rule that it has know it with other arguments only?"""
    entry = entry_for(call.target)
    if entry is None or is_inplace(call) or not (entry.in_part or looks_up(call)):
        return False
    try:
        lower([*_made_of_nothing(call, region), call], region.values, region.live_ins, call.outputs, "alone")
    except NotLowerable:
        return True
    return False


def _made_of_nothing(call: Call, region: Region) -> list[Call]:
    """Calls whose results it reads, and that read nothing themselves: an index may hold all places."""
    made = {value: one for one in region.calls if not is_inplace(one) for value in one.outputs}
    left, found = list(operands(call)), dict[int, Call]()
    while left:
        value = left.pop()
        source = made.get(value)
        if source is None or value in found:
            continue
        below = operands(source)
        if not below or (len(below) == 1 and entry_for(source.target) is not None):
            found[value] = source
            left += below
    known = {value for value, one in found.items() if _is_from_nothing(one, found)}
    return [one for one in region.calls if known.intersection(one.outputs)]


def _is_from_nothing(call: Call, found: Mapping[int, Call]) -> bool:
    return all(value in found and _is_from_nothing(found[value], found) for value in operands(call))


def _is_known(call: Call, region: Region) -> bool:
    """Is what it makes known by heart, so that no kernel reads it: a constant with a triangle in it?"""
    return all(region.values[value].triangle is not None for value in call.outputs)


def outside(region: Region, computed: Collection[int] = ()) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The calls' names, each with the lines it is in, counted from 1; in the order of the source.

    computed: values that kernels compute, as rows that are looked up for a product and would else be a copy"""
    lines: dict[str, dict[int, None]] = {}
    for call in sorted(region.calls, key=lambda call: call.range.start):
        if call.outputs and set(call.outputs) <= {*computed}:
            continue
        if (_is_outside(call) or _is_refused(call, region)) and not _is_known(call, region):
            lines.setdefault(canonical(call.target), {})[call.range.start.line + 1] = None
    return tuple((name, tuple(found)) for name, found in lines.items())


def outside_words(region: Region, computed: Collection[int] = ()) -> str:
    """ "torch.sort in line 12 and Tensor.gather in lines 14, 20 are outside the algebra"; "" where nothing is."""
    found = outside(region, computed)
    if not found:
        return ""
    said = [f"{name} in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" for name, lines in found]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    return f"{listed} {'are' if len(said) > 1 else 'is'} outside the algebra"

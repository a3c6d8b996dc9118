"""What of a region is outside of the algebra: calls that no rule gives a meaning, which end the kernels beside them.

A rule may know a call with some arguments and refuse it with others: of products of groups, or of matrices with scales,
PyTorch's own names do not say which it is.
"""

from __future__ import annotations

from mugraph.ir.calls import Call, is_inplace, operands
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.units.lower import NotLowerable, lower


def is_outside(call: Call) -> bool:
    """Has it no rule? Of an index the rule knows slices, not tensors of places. Writes end nothing but their order."""
    if is_inplace(call):
        return False
    entry = entry_for(call.target)
    is_gather = canonical(call.target) == "Tensor.__getitem__" and len(operands(call)) > 1
    return entry is None or is_gather


def _is_refused(call: Call, region: Region) -> bool:
    """Does the rule that it has know it with other arguments only?"""
    entry = entry_for(call.target)
    if entry is None or not entry.in_part:
        return False
    try:
        lower([call], region.values, region.live_ins, call.outputs, "alone")
    except NotLowerable:
        return True
    return False


def _is_known(call: Call, region: Region) -> bool:
    """Is what it makes known by heart, so that no kernel reads it: a constant with a triangle in it?"""
    return all(region.values[value].triangle is not None for value in call.outputs)


def outside(region: Region) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The calls' names, each with the lines it is in, counted from 1; in the order of the source."""
    lines: dict[str, dict[int, None]] = {}
    for call in sorted(region.calls, key=lambda call: call.range.start):
        if (is_outside(call) or _is_refused(call, region)) and not _is_known(call, region):
            lines.setdefault(canonical(call.target), {})[call.range.start.line + 1] = None
    return tuple((name, tuple(found)) for name, found in lines.items())


def outside_words(region: Region) -> str:
    """ "torch.sort in line 12 and Tensor.gather in lines 14, 20 are outside the algebra"; "" where nothing is."""
    found = outside(region)
    if not found:
        return ""
    said = [f"{name} in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" for name, lines in found]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    return f"{listed} {'are' if len(said) > 1 else 'is'} outside the algebra"

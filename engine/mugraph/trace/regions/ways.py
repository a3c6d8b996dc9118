"""The ways in which one piece of code was executed: what is made of each, those that did the same as one.

Blocks of several widths are ways, and so are a head's calls at several resolutions, and layers with several dilations.
Steps of a loop are none: not those that differ in a number that the loop counts, nor those of tensors that grow from
step to step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.ran import together
from mugraph.ir.region import Range
from mugraph.trace.regions.assemble import Assembled
from mugraph.trace.regions.conditions import merge

Found = dict[tuple[str, Range], list[Assembled]]
"""By function and place: for each way in which the code was executed, what is made of it."""


MOST = 16
"""Of one piece of code: each is searched by itself, and its guard is asked after those before it said no."""
_RESOLUTIONS = 5
"""Ways with the same weights. Where there are more, a tensor grows: the first stands for them."""


def overlap(one: Range, other: Range) -> bool:
    return one.start < other.end and other.start < one.end


def add(found: Found, key: tuple[str, Range], *new: Assembled) -> None:
    """Each is put together with the one that is the same but for the code that ran, or is a way of its own."""
    ways = found.setdefault(key, [])
    for other in new:
        for at, known in enumerate(ways):
            like = replace(known.region, ran=other.region.ran, outside=other.region.outside, called=other.region.called)
            if like == other.region:
                ways[at] = _merged(known, other)
                break
            if _is_another_step(known, other):
                break
        else:
            ways.append(other)


def searched(ways: Sequence[Assembled]) -> list[Assembled]:
    """Those that are worth a search of their own: of all ways of one place those that were executed most, in their
    order."""
    with_weights = Counter(way.kept for way in ways)
    grows = {kept for kept, count in with_weights.items() if count > _RESOLUTIONS}
    first = {kept: next(way for way in ways if way.kept == kept) for kept in grows}
    left = [way for way in ways if way.kept not in grows or way is first[way.kept]]
    most = sorted(range(len(left)), key=lambda number: -left[number].times)[:MOST]
    return [left[number] for number in sorted(most)]


def _is_another_step(one: Assembled, other: Assembled) -> bool:
    """Whether they differ in nothing but numbers of variables: that of a loop, or of its caller's. What layers have of
    their own, as the dilation of a convolution, makes them two ways."""
    if [call.target for call in one.region.calls] != [call.target for call in other.region.calls]:
        return False
    if one.region.values != other.region.values:
        return False
    shared = one.conditions.keys() & other.conditions.keys()
    differ = [name for name in shared if one.conditions[name] != other.conditions[name]]
    return bool(differ) and all(name.isidentifier() for name in differ)


def _merged(known: Assembled, other: Assembled) -> Assembled:
    """Executions that did the same, as one. If different code ran in them, the first one is kept, with its guards."""
    ran = dict(known.region.ran)
    for name, one in other.region.ran.items():
        both = together(ran.get(name, one), one)
        if both is None:
            return known
        ran[name] = both
    called = tuple(sorted({*known.region.called, *other.region.called}))
    values = {  # of a tensor that begins at a whole word in some of them only, the kernel may be given any
        number: replace(info, skew=info.skew or other.region.values[number].skew)
        for number, info in known.region.values.items()
    }
    outside = {**known.region.outside, **other.region.outside}
    region = replace(known.region, ran=ran, outside=outside, called=called, values=values)
    known.others.extend(other.units)
    return replace(known, region=region, conditions=merge(known.conditions, other.conditions))

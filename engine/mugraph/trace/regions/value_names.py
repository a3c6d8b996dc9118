"""One name for every value of a region: the name in the user's code, else one for what is computed. Names are unique
and neither keywords nor builtins. Kernels, the calls between them and drawings all use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mugraph.ir.calls import operands
from mugraph.ir.names import RESERVED, numbered, take
from mugraph.ir.region import Region
from mugraph.ops.finishing.names import identifier
from mugraph.trace.regions.stems import stem


def value_names(region: Region) -> dict[int, str]:
    """Value number -> name, of the live-ins and of everything the calls compute.

    Names that the user gave come first: whatever has none has to make way for them.
    """
    taken = set(RESERVED)
    names: dict[int, str] = {}
    for live_in in region.live_ins:
        names[live_in.value] = _unique(identifier(live_in.expression), taken)
    for value, name in _given(region):
        if value not in names:
            names[value] = _unique(name, taken)
    for value, name in _derived(region, names):
        names[value] = _unique(name, taken)
    return names


def _unique(wanted: str, taken: set[str]) -> str:
    wanted = wanted if wanted.isascii() else identifier(wanted)
    return take(numbered(f"{wanted}_" if wanted in RESERVED else wanted), taken)


def _derived(region: Region, names: Mapping[int, str]) -> list[tuple[int, str]]:
    """Names for values that the user has not named. Values that are used once come last: they are often written where
    they are used, so numbered names are better spent on the others."""
    paths = {live_in.value: live_in.expression for live_in in region.live_ins}
    outs = {live_out.value for live_out in region.live_outs}
    known = dict(names)
    for call in region.calls:
        wanted = stem(call, known, paths, region.values)
        for value in call.outputs:
            known.setdefault(value, "out" if value in outs else wanted)
    uses = Counter(value for call in region.calls for value in operands(call))
    return sorted(
        ((value, name) for value, name in known.items() if value not in names),
        key=lambda named: uses[named[0]] == 1 and named[0] not in outs,
    )


def _given(region: Region) -> Iterable[tuple[int, str]]:
    """What the user's code binds after the region, then what it binds inside."""
    for live_out in region.live_outs:
        if live_out.expression.isidentifier() and live_out.expression != "return":
            yield live_out.value, live_out.expression
    made = [value for call in region.calls for value in call.outputs]
    for value in dict.fromkeys(made):
        if value in region.names:
            yield value, region.names[value]

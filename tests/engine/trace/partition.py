"""How tests look at replacement units."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.region import Region

Regions = Callable[..., list[Region]]


def only(found: list[Region]) -> Region:
    assert len(found) == 1, [region.text for region in found]
    return found[0]


def ins(region: Region) -> list[str]:
    return [named.expression for named in region.live_ins]


def outs(region: Region) -> list[str]:
    return [named.expression for named in region.live_outs]


def targets(region: Region) -> list[str]:
    return [call.target for call in region.calls]

"""Regions of one place of which the same is said: code that is called with several sizes, and has no kernel at any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mugraph.events import RegionResult

_NUMBER = re.compile(r"\d[\d.,]*")


def said_once(results: Sequence[RegionResult], order: Iterable[int]) -> list[tuple[int, int]]:
    """Positions in this order, and how many others there are of each of which the same is said but for its numbers. A
    region that has a kernel is one by itself."""
    others: dict[object, int] = {}
    first: dict[object, int] = {}
    for number in order:
        key = _key(results[number], number)
        first.setdefault(key, number)
        others[key] = others.get(key, -1) + 1
    return [(number, others[key]) for key, number in first.items()]


def _key(result: RegionResult, number: int) -> object:
    if result.plan is not None or not result.reason:
        return number
    region = result.region
    return region.function, region.range, result.status, _NUMBER.sub("#", result.reason)

"""A search unit at smaller sizes, where its recorded calls can be made for them."""

from __future__ import annotations

from collections.abc import Iterator

from mugraph.ir.region import SearchUnit


def smaller_units(unit: SearchUnit) -> Iterator[SearchUnit]:
    yield from ()

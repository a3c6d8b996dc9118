"""Tiles of unknown integers and masks with other dimensions: `offs[:, None]`, tl.trans, tl.broadcast_to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mugraph.triton_text.ranges.values import Bools, Ints, Tile, rearranged, stretched
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import listed

SHAPED = {"tl.expand_dims", "tl.broadcast_to", "tl.trans", "tl.permute"}


def indexed_pairs(keys: tuple[Any, ...], pairs: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    left = list(pairs)
    for one in keys:
        if one is None:
            found.append((1, frozenset[str]()))
        elif isinstance(one, slice) and one == slice(None) and left:
            found.append(left.pop(0))
        else:
            raise Unreadable("an element of a tile is taken")
    if left:
        raise Wrong("type", f"{len(keys)} indices are given to a tile of {len(pairs)} dimensions")
    return tuple(found)


def shaped(name: str, tile: Ints | Bools, arguments: Sequence[Any], named: Mapping[str, Any]) -> Tile:
    match name:
        case "tl.expand_dims":
            at = (arguments[0] if arguments else named["axis"]) % (len(tile.shape) + 1)
            return rearranged(tile, lambda pairs: (*pairs[:at], (1, frozenset[str]()), *pairs[at:]))
        case "tl.broadcast_to":
            return stretched(tile, listed(arguments[0]) if len(arguments) == 1 else tuple(arguments))
        case _:
            order = listed(arguments[0]) if len(arguments) == 1 else tuple(arguments)
            order = order or tuple(reversed(range(len(tile.shape))))
            return rearranged(tile, lambda pairs: tuple(pairs[at] for at in order))

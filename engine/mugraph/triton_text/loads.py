"""What blocks load: whole numbers that are known, and numbers of the fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.ints import Bools, Ints
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.reals import FINITE, NAN, Real
from mugraph.triton_text.running import Launch
from mugraph.triton_text.tiles import Floats, Tile, of_shape


def whole_numbers(memory: Memory, offsets: Ints, where: Bools | None, other: Any) -> Tile:
    """Of memory whose numbers are known."""
    assert memory.data is not None
    places = offsets.whole()
    if where is not None:
        places, mask = np.broadcast_arrays(places, where.whole())
        places = np.where(mask, places, 0)
        found = np.where(mask, memory.data[places], 0 if other is None else other)
    else:
        found = memory.data[places]
    if memory.kind == "int1":
        return Bools(offsets.shape, (found.astype(np.bool_),))
    return Ints(offsets.shape, (found.astype(np.int64),), memory.kind)


def loaded(
    launch: Launch, of: Arithmetic, blocks: NDArray[np.int64], memory: Memory, offsets: Ints, where: Bools | None,
    other: Any, *, last: bool,
) -> Real:  # fmt: skip
    """By these blocks of a launch. last: by the last one of each group (arrivals.py)"""
    reals = of.reals
    assert reals is not None
    places = offsets.whole()
    mask = None if where is None else where.whole()
    if mask is not None:
        places, mask = np.broadcast_arrays(places, mask)
        if mask.all():
            mask = None
    own: NDArray[np.int64] | None = None
    if memory.of_step(launch.number) is not None:
        ids = blocks.reshape(-1, *(1,) * len(offsets.shape))
        places, ids = np.broadcast_arrays(places, ids)
        mask = None if mask is None else np.broadcast_to(mask, places.shape)
        own = (ids if mask is None else ids[mask]).reshape(-1)
    flat = (places if mask is None else places[mask]).reshape(-1)
    found = launch.world.read(memory, flat, launch.number, own, last=last)
    if mask is None:
        return found.each(lambda array: array.reshape(places.shape))

    def spread(array: NDArray[Any], fill: Any) -> NDArray[Any]:
        result = np.full(places.shape, fill, array.dtype)
        result[mask] = array
        return result

    if other is None:  # anything may be in these lanes
        state = found.state if found.state is not None else np.full(flat.shape, FINITE, np.uint8)
        q = None if found.q is None else spread(found.q, 0)
        return Real(spread(found.p, 0), q, spread(state, NAN))
    value = Real(
        spread(found.p, 0),
        None if found.q is None else spread(found.q, 0),
        None if found.state is None else spread(found.state, FINITE),
    )
    rest = of_shape(of.floats(other), offsets.shape)
    assert isinstance(rest, Floats)
    assert rest.real is not None
    return reals.chosen(mask, value, rest.real)

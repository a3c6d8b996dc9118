"""Integers of many blocks compared. A mask along two dimensions, as a causal one, holds everywhere in most blocks, or
nowhere: their ends say so."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from mugraph.triton_text.ints import Array, Mask, of_blocks

_MANY = 1 << 14
"""Elements, from which on the ends are looked at first."""


def compared(holds: Callable[[Any, Any], Any], x: Array, y: Array) -> Mask:
    """holds: of <, <=, > and >=. x, y: blocks first"""
    shape = np.broadcast_shapes(x.shape, y.shape)
    if prod(shape) < _MANY or x.ndim != y.ndim or shape[0] < 2:
        return holds(x, y)
    (low, high), (least, most) = _ends(x), _ends(y)
    always, ever = holds(high, least) & holds(low, most), holds(low, most) | holds(high, least)
    left = np.flatnonzero(ever & ~always)
    if 2 * left.size > shape[0]:
        return holds(x, y)
    found = np.empty(shape, np.bool_)
    found[:] = always.reshape(-1, *(1,) * (len(shape) - 1))
    if left.size:
        found[left] = holds(of_blocks(x, left), of_blocks(y, left))
    return found


def _ends(x: Array) -> tuple[Array, Array]:
    """[blocks]"""
    flat = x.reshape(len(x), -1)
    return flat.min(1), flat.max(1)

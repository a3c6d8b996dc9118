"""Numbers of the indices by which a program looks rows up.

No two elements of an index say the same row where there are rows enough, and no two indices the same rows, so that one
row in place of another shows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.lookups import Lookup
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor

Numbers = NDArray[np.int64]
_BEYOND, _KINDS = 3, 3
"""Rows beyond the last one, that a number says which is none of a row; and kinds of such numbers."""
_WITHIN = 2
"""Draws of numbers that are a row's."""


def numbers_of(program: TensorProgram, draw: int = 0, *, beyond: bool = False) -> dict[str, Numbers]:
    """By the names of indices. draw: another one gives others.

    beyond: some are no row's, and some count from the end where that is allowed; which ones, depends on the draw
    """
    found: dict[str, Numbers] = {}
    for number, (name, (count, lookups)) in enumerate(_lookups(program).items()):
        rows = min(one.rows for one in lookups)
        rng = np.random.default_rng((rows, count, number, draw))
        drawn = rng.permutation(rows)[:count] if count <= rows else rng.integers(0, rows, count)
        wraps = all(one.wraps for one in lookups)
        if wraps:
            drawn = np.where(np.arange(count) % 2 == 1, drawn - rows, drawn)
        if beyond:
            special = [rows + _BEYOND, -rows - _BEYOND, -2]
            for at in range(min(count, _KINDS)):
                drawn[at] = special[(at + draw) % _KINDS]
        found[name] = drawn.astype(np.int64)
    return found


def draws_of(program: TensorProgram, rng: np.random.Generator, *, beyond: bool) -> list[dict[str, Numbers]]:
    """What the indices hold, one draw after the other; one, of none, where there are no indices.

    beyond: with numbers that are none of a row, each kind of such in each index
    """
    counts = [count for count, _ in _lookups(program).values()]
    if not counts:
        return [{}]
    first = _KINDS * int(rng.integers(1 << 40))
    special = max(-(-_KINDS // min(_KINDS, count)) for count in counts) if beyond else 0
    drawn = [numbers_of(program, first + draw, beyond=True) for draw in range(special)]
    return [*drawn, *(numbers_of(program, first + _KINDS + draw) for draw in range(_WITHIN))]


def rows_of(tensor: Tensor, numbers: Mapping[str, Numbers]) -> dict[int, Numbers]:
    """Dimension -> which of its rows are read."""
    return {dim: one.rows_at(numbers[one.name]) for dim, one in tensor.looked_up.items()}


def _lookups(program: TensorProgram) -> dict[str, tuple[int, list[Lookup]]]:
    """Index -> how many elements it has, and who reads it."""
    found: dict[str, tuple[int, list[Lookup]]] = {}
    for tensor in program.tensors:
        for one, index in zip(tensor.looked_up.values(), tensor.indices, strict=True):
            found.setdefault(one.name, (index.shape(program.sizes)[0], []))[1].append(one)
    return found

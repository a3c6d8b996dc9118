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
_BEYOND = 3
"""Rows beyond the last one, that a number says which is none of a row."""


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
            for at in range(min(count, len(special))):
                drawn[at] = special[(at + draw) % len(special)]
        found[name] = drawn.astype(np.int64)
    return found


def draws_of(program: TensorProgram) -> int:
    """Draws with numbers beyond the rows, with which each kind of such is in each index."""
    return max((-(-3 // min(3, count)) for count, _ in _lookups(program).values()), default=0)


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

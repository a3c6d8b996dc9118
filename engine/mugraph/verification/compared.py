"""Whole numbers that are compared with others: what inputs of such a type hold in a test.

A class is one of the places that it is compared with. Numbers of which nothing is said are few, so that some are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import COMPARED
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram

_FEW = 4
"""Numbers of a tensor that is compared with other inputs alone."""
_SHARE = 0.125
"""Of the numbers that the program says, as an index that is ignored."""
_STEEPNESS = 1.7
"""Of the logistic function that is nearest to how normal numbers are distributed."""


@dataclass(frozen=True)
class Meant:
    """first, count: the places that a tensor is compared with. others: the numbers that it is compared with"""

    first: int
    count: int
    others: tuple[int, ...]

    def drawn(self, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Made of normal numbers: about as many of each place."""
        share = 1.0 / (1.0 + np.exp(-_STEEPNESS * np.clip(normal, -30.0, 30.0)))
        apart = _SHARE if self.others else 0.0
        places = np.clip(np.floor((share - apart) / (1.0 - apart) * self.count), 0, self.count - 1) + self.first
        if not self.others:
            return places
        which = np.clip(np.floor(share / apart * len(self.others)), 0, len(self.others) - 1).astype(np.int64)
        return np.where(share < apart, np.array(self.others, np.float64)[which], places)


def meant(program: TensorProgram) -> Mapping[str, Meant]:
    """By the program's tensors of whole numbers that are compared."""
    ops = {op.name: op for op in program.ops}
    compared = (tensor.name for tensor in program.tensors if tensor.dtype in COMPARED)
    return {**{name: _meant(program, name, ops) for name in compared}, **_rows(program)}


def _rows(program: TensorProgram) -> dict[str, Meant]:
    """Of indices by which rows are looked up: those that all of their tensors have."""
    found: dict[str, Meant] = {}
    for one in (one for tensor in program.tensors for one in tensor.looked_up.values()):
        known = found.get(one.name, Meant(one.least, one.rows - one.least, ()))
        first, end = max(known.first, one.least), min(known.first + known.count, one.rows)
        found[one.name] = Meant(first, end - first, ())
    return found


def _meant(program: TensorProgram, tensor: str, ops: Mapping[str, Op]) -> Meant:
    loads = {op.name for op in program.ops if op.tensor == tensor}
    met = [ops[name] for op in program.ops if loads.intersection(op.inputs) for name in op.inputs if name not in loads]
    others = tuple(sorted({int(op.value) for op in met if op.kind is Kind.CONST}))
    places = [(int(op.value), prod(program.sizes[axis] for axis in op.rows)) for op in met if op.kind is Kind.POSITION]
    if not places:
        return Meant(min(others, default=0), _FEW, others)
    first = min(start for start, _ in places)
    return Meant(first, max(start + count for start, count in places) - first, others)

"""Memory as a launch sees it: what it begins with, and for each step that writes to it which block writes which
element, and what.

Who writes is known of all blocks; what is written only of those that were run (running.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.owners import Owners, in_order
from mugraph.triton_text.reals import FINITE, Real, States
from mugraph.untouched import untouched
from mugraph.verification.field import P, Q

Flat = NDArray[np.int64]
Strides = tuple[int, ...]

UNWRITTEN, WITH_Q, WITHOUT_Q = 0, 1, 2
"""Codes of a stored element; NaN and the infinities follow, in the order of reals.py."""
_STATES = 2
_PROMISED = 1 << 30
"""Bytes that are asked for as others are."""
_Number = TypeVar("_Number", np.uint8, np.int64)


@dataclass
class Layer:
    """What one step writes. line: of a statement that does; codes, p, q: of the elements that were computed"""

    step: int
    owners: Owners
    line: int
    codes: NDArray[np.uint8]
    p: NDArray[np.int64]
    q: NDArray[np.int64]
    adds: bool = False
    """Blocks add to its elements, in any order: several may add to one."""

    @staticmethod
    def empty(step: int, size: int, line: int) -> Layer:
        return Layer(step, Owners(), line, _zeros(size, np.uint8), _zeros(size, np.int64), _zeros(size, np.int64))

    def begin(self) -> None:
        """Nothing has been computed."""
        self.codes = _zeros(self.codes.size, np.uint8)
        if self.adds:
            self.p, self.q = _zeros(self.p.size, np.int64), _zeros(self.q.size, np.int64)

    def put(self, at: Flat, value: Real) -> None:
        """value: flat, an element for each place"""
        codes = np.full(at.shape, WITHOUT_Q if value.q is None else WITH_Q, np.uint8)
        if value.state is not None:
            codes = np.where(value.state == FINITE, codes, value.state + _STATES).astype(np.uint8)
        self.codes[at], self.p[at] = codes, value.p
        if value.q is not None:
            self.q[at] = value.q

    def add(self, at: Flat, value: Real) -> None:
        """value: flat, an element for each place, which may come more than once; numbers only"""
        np.add.at(self.p, at, value.p)
        self.p[at] %= P
        if value.q is not None:
            np.add.at(self.q, at, value.q)
            self.q[at] %= Q
        self.codes[at] = np.maximum(self.codes[at], WITHOUT_Q if value.q is None else WITH_Q)


def _zeros(size: int, kind: type[_Number]) -> NDArray[_Number]:
    """Its pages come when they are touched: a tensor has gigabytes, of which a few blocks are run. The system would not
    promise more of them than it has."""
    size_bytes = size * np.dtype(kind).itemsize
    return np.zeros(size, kind) if size_bytes < _PROMISED else np.frombuffer(untouched(size_bytes), kind)


def coded(codes: NDArray[np.uint8], p: Flat, q: Flat | None) -> Real:
    state: States | None = None
    if (codes > WITHOUT_Q).any():
        state = np.where(codes > WITHOUT_Q, codes - _STATES, FINITE).astype(np.uint8)
    return Real(p, None if (codes == WITHOUT_Q).any() else q, state)


@dataclass(eq=False)
class Memory:
    """
    size:   elements of the storage
    kind:   type of its elements, as Triton calls it
    shape, strides: of the tensor that it was allocated as, or passed as; what lies between its elements is not read
    source: number of the first element among all inputs (inputs.py); None for what the launcher allocates
    fill:   the number that it begins with; None for what begins unwritten
    data:   whole numbers or truth values, of inputs that hold such
    """

    name: str
    size: int
    kind: str
    shape: tuple[int, ...]
    strides: Strides
    source: int | None = None
    fill: float | None = None
    data: NDArray[Any] | None = None
    layers: list[Layer] = field(default_factory=list[Layer])

    @property
    def is_dense(self) -> bool:
        return prod(self.shape) == self.size

    def layer(self, step: int, line: int) -> Layer:
        """Of this step, made where there is none."""
        if not self.layers or self.layers[-1].step != step:
            self.layers.append(Layer.empty(step, self.size, line))
        return self.layers[-1]

    def of_step(self, step: int) -> Layer | None:
        return next((layer for layer in self.layers if layer.step == step), None)

    def is_written(self, before: int) -> bool:
        """Is every element, before this step?"""
        return self.source is not None or self.fill is not None or self.unwritten(before) is None

    def unwritten(self, before: int) -> int | None:
        """The first element that nothing writes before this step."""
        if any(layer.step < before and layer.owners.fills(self.size) for layer in self.layers):
            return None
        runs = [layer.owners.runs for layer in self.layers if layer.step < before and not layer.adds]
        starts = np.concatenate([one.starts for one in runs]) if runs else np.zeros(0, np.int64)
        ends = np.concatenate([one.ends for one in runs]) if runs else starts
        order = in_order(starts)
        reach = np.concatenate(([0], np.maximum.accumulate(ends[order])))
        gaps = np.flatnonzero(np.concatenate((starts[order], [self.size])) > reach)
        return int(reach[gaps[0]]) if gaps.size else None

    def element(self, at: int) -> str:
        """An element as a person names it: out[3, 17]."""
        if not 0 <= at < self.size:
            return f"element {at} of {self.name}, which has {self.size}"
        return f"{self.name}[{', '.join(map(str, self.index(at)))}]"

    def index(self, at: int) -> list[int]:
        """Of an element of its memory."""
        return [at // stride % size if stride else 0 for stride, size in zip(self.strides, self.shape, strict=True)]

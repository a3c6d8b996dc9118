"""Which block writes which element of a tensor, of all blocks of a launch at once and without a list of them.

An address is a sum: of a number for each digit of the block's number, and of one for each lane of the tile. Parts that
a mask ties together are one group. Where each group's numbers lie further apart than all smaller groups reach, no two
sums are equal, as no two numbers are that differ in a digit. Then no element is written twice, how many are written is
a product, and the writer of an element is found digit by digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.ints import Bools, Ints

Flat = NDArray[np.int64]
Dims = frozenset[int]
MOST = 1 << 22
"""Elements of one group, and of what is written down at once for all blocks."""


class NotLaidOut(Exception):
    """The addresses are no such sums, or an element may be written twice."""


@dataclass(frozen=True)
class Group:
    """values: addresses, sorted, the first one 0. blocks: what belongs to each in the number of the block that it is
    of"""

    values: Flat
    blocks: Flat

    @property
    def gap(self) -> float:
        return float(np.diff(self.values).min()) if len(self.values) > 1 else np.inf

    @property
    def span(self) -> int:
        return int(self.values[-1])

    def is_as(self, other: Group) -> bool:
        return np.array_equal(self.values, other.values) and np.array_equal(self.blocks, other.blocks)


@dataclass(frozen=True)
class Lattice:
    """base: the least address. groups: by the dimensions that each has. steps: of a digit, by its dimension, what one
    more of it adds to the number of the block, and how many there are"""

    base: int
    groups: Mapping[Dims, Group]
    steps: Mapping[int, tuple[int, int]]

    @property
    def count(self) -> int:
        """Elements that are written."""
        return prod(len(group.values) for group in self.groups.values())

    @cached_property
    def _ranked(self) -> list[tuple[Dims, Group]]:
        """The one whose numbers lie furthest apart first."""
        return sorted(self.groups.items(), key=lambda one: one[1].gap, reverse=True)

    def check(self) -> None:
        """Is each sum of its own? Raises NotLaidOut."""
        reach = 0
        for _, group in reversed(self._ranked):
            if group.gap <= reach:
                raise NotLaidOut
            reach += group.span

    def fills(self, size: int) -> bool:
        """Are they all the elements from 0 to size - 1?"""
        last = self.base + sum(group.span for group in self.groups.values())
        return self.base >= 0 and last < size and self.count == size

    def of(self, places: Flat) -> Flat:
        """1 + the block that writes each element, 0 for none."""
        left, block = places - self.base, np.zeros(places.shape, np.int64)
        found = left >= 0
        for _, group in self._ranked:
            at = np.searchsorted(group.values, left, "right") - 1
            found &= at >= 0
            at = np.maximum(at, 0)
            left, block = left - group.values[at], block + group.blocks[at]
        return np.where(found & (left == 0), block + 1, 0)

    def by(self, block: int) -> Flat:
        """The elements that a block writes."""
        every = np.full(1, self.base, np.int64)
        for dims, group in self.groups.items():
            own = sum(block // step % size * step for dim, (step, size) in self.steps.items() if dim in dims)
            every = (every[:, None] + group.values[group.blocks == own]).reshape(-1)
        return np.sort(every)

    def runs(self) -> tuple[Flat, Flat, Flat]:
        """First elements, ends and blocks of runs of neighbours, sorted."""
        length, starts, blocks = 1, np.full(1, self.base, np.int64), np.zeros(1, np.int64)
        for _, group in self._ranked:
            if group.span == len(group.values) - 1 and len(group.values) > 1 and not group.blocks.any():
                length = len(group.values)
                continue
            starts = (starts[:, None] + group.values).reshape(-1)
            blocks = (blocks[:, None] + group.blocks).reshape(-1)
        order = np.argsort(starts, kind="stable")
        return starts[order], starts[order] + length, blocks[order]


def lattice(offsets: Ints, mask: Bools | None, digits: Sequence[tuple[int, int]]) -> Lattice | None:
    """None: nothing is written. digits: of each dimension before the tile's, what one more adds to the number of the
    block, and its size. Raises NotLaidOut."""
    sizes = (*(size for _, size in digits), *offsets.shape)
    steps = dict(enumerate(digits))
    parts = [_wide(part, len(sizes)) for part in offsets.parts]
    conditions = [_wide(part, len(sizes)) for part in (mask.parts if mask is not None else ())]
    base, groups = 0, dict[Dims, Group]()
    tied = _tied([*parts, *conditions], sizes)
    for part in parts:
        base += int(part.reshape(-1)[0]) if part.size == 1 else 0
    if any(part.size == 1 and not part.any() for part in conditions):
        return None
    for dims in tied:
        shape = tuple(size if at in dims else 1 for at, size in enumerate(sizes))
        if prod(shape) > MOST:
            raise NotLaidOut
        values, blocks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        where = np.ones(shape, np.bool_)
        for part in parts:
            values = values + (part if _varies(part) & dims else 0)
        for part in conditions:
            where = where & (part if _varies(part) & dims else True)
        for at in dims & steps.keys():
            blocks = blocks + (np.arange(sizes[at]) * steps[at][0]).reshape(
                *(-1 if dim == at else 1 for dim in range(len(sizes)))
            )
        if not where.any():
            return None
        first, group = _sorted(values[where], blocks[where])
        base += first
        groups[dims] = group
    found = Lattice(base, groups, steps)
    found.check()
    return found


def together(parts: Sequence[Lattice]) -> Lattice:
    """Of several statements, or of a statement in a loop: of those that differ in one group and their first address.
    Raises NotLaidOut."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(part.groups.keys() != first.groups.keys() for part in parts):
        raise NotLaidOut
    differing = [
        dims for dims in first.groups if not all(part.groups[dims].is_as(first.groups[dims]) for part in parts)
    ]
    if len(differing) > 1:
        raise NotLaidOut
    dims = differing[0] if differing else Dims()
    one = Group(np.zeros(1, np.int64), np.zeros(1, np.int64))
    own = [(part.groups.get(dims, one), part.base) for part in parts]
    values = np.concatenate([group.values + base for group, base in own])
    base, joined = _sorted(values, np.concatenate([group.blocks for group, _ in own]))
    found = Lattice(base, {**first.groups, dims: joined}, first.steps)
    found.check()
    return found


def _sorted(values: Flat, blocks: Flat) -> tuple[int, Group]:
    order = np.argsort(values, kind="stable")
    values, blocks = values[order], blocks[order]
    return int(values[0]), Group(values - values[0], blocks)


def addresses(offsets: Ints, mask: Bools | None, of_blocks: int) -> tuple[int, list[Flat]] | None:
    """Of all blocks, where masks hold: the least address, and for each group of dimensions what it adds to it. None
    where no mask holds. of_blocks: dimensions before the tile's. Raises NotLaidOut."""
    rank = of_blocks + len(offsets.shape)
    parts = [_wide(part, rank) for part in offsets.parts]
    conditions = [_wide(part, rank) for part in (mask.parts if mask is not None else ())]
    if any(not part.any() for part in conditions):
        return None
    least, groups = sum(int(part.reshape(-1)[0]) for part in parts if part.size == 1), list[Flat]()
    for dims in _tied([*parts, *conditions], None):
        own = [part for part in parts if _varies(part) & dims]
        shape = np.broadcast_shapes(*(p.shape for p in (*own, *conditions) if _varies(p) & dims))
        if prod(shape) > MOST:
            raise NotLaidOut
        values, where = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
        for part in own:
            values += part
        for part in conditions:
            where &= part if _varies(part) & dims else True
        if not where.any():
            return None
        values = values[where]
        least += int(values.min())
        groups.append(values - values.min())
    return least, groups


def are_places(least: int, groups: Sequence[Flat], shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Is each sum an element of a tensor, and not between two of them? Its digits by the strides are sums of the
    groups' digits, where none is carried."""
    every = sorted(((stride, size) for stride, size in zip(strides, shape, strict=True) if stride > 0 and size > 1))
    left = [np.full(1, least, np.int64), *groups]
    for stride, size in reversed(every):
        if sum(int((one // stride).max()) for one in left) >= size:
            return False
        left = [one % stride for one in left]
    return not any(one.any() for one in left)


def _wide(part: NDArray[Any], rank: int) -> NDArray[Any]:
    return part.reshape(*(1,) * (rank - part.ndim), *part.shape)


def _varies(part: NDArray[Any]) -> Dims:
    return frozenset(at for at, size in enumerate(part.shape) if size > 1)


def _tied(parts: Sequence[NDArray[Any]], sizes: Sequence[int] | None) -> list[Dims]:
    """Dimensions that some part varies along together. sizes: of all dimensions, each of which is in a group then"""
    groups: list[Dims] = []
    every = [_varies(part) for part in parts]
    every += [Dims((at,)) for at, size in enumerate(sizes or ()) if size > 1]
    for dims in filter(None, every):
        tied = [group for group in groups if group & dims]
        groups = [group for group in groups if not group & dims] + [dims.union(*tied)]
    return groups

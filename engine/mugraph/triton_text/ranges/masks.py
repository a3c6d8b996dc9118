"""Masks of a program as formulas over the indices of a kernel, at every size.

A kernel tells numbers apart along two axes only as a mask of the program does, or its complement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mugraph.ir.masks import corner, diagonal
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.triton_text.ranges.formulas import Formula, at_most, opposite
from mugraph.triton_text.ranges.poly import ZERO, Poly, number, product


@dataclass(frozen=True)
class Triangle:
    """1 where the index along `columns` is at most that along `rows` + diagonal; "" for an axis of one element."""

    rows: str
    columns: str
    diagonal: Poly

    def formulas(self, indices: Mapping[str, Iterable[Poly]]) -> Iterator[Formula]:
        """Where it is 1, and where it is 0. indices: of each axis, that the kernel has"""
        for row in (ZERO,) if not self.rows else indices.get(self.rows, ()):
            for column in (ZERO,) if not self.columns else indices.get(self.columns, ()):
                holds = at_most(column, row + self.diagonal)
                yield from (holds, opposite(holds))


def triangles(program: TensorProgram, sizes: Mapping[str, Poly]) -> tuple[Triangle, ...]:
    """The program's masks along one axis or two. sizes: of its axes"""
    found = (_triangle(op, program.sizes, sizes) for op in program.ops if op.kind is Kind.MASK)
    return tuple(one for one in found if one is not None)


def _triangle(op: Op, largest: Mapping[str, int], sizes: Mapping[str, Poly]) -> Triangle | None:
    if len(op.rows) > 1 or len(op.columns) > 1:
        return None
    of = number(diagonal(op))
    if corner(op) == "last":
        for sign, axes in ((1, op.columns), (-1, op.rows)):
            of = of + number(sign) * (_extent(axes, sizes) - number(prod(largest[axis] for axis in axes)))
    return Triangle("".join(op.rows), "".join(op.columns), of)


def _extent(axes: Sequence[str], sizes: Mapping[str, Poly]) -> Poly:
    return product(sizes[axis] for axis in axes)

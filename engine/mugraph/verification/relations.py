"""Relations between the sizes of a program's axes and those of the block graphs that compute it: which are equal, and
which are products of others.

They follow from tensors that are seen with two sets of axes: by the program and a kernel, by two kernels, or as two
tensors with one source (x[i, k] and x[j, k]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, Tensor
from mugraph.verification.axis_names import groups
from mugraph.verification.evaluate import Malformed


class Relations:
    """sizes:    every axis, and parts that two cuts of one dimension made necessary -> its full size
    equal:    axis -> the axis that stands for all of its size
    products: an axis that stands for itself -> its parts
    """

    def __init__(self, program: TensorProgram, blocks: Sequence[BlockGraph], *, sources: bool = True) -> None:
        """sources: two tensors with one source count as one. Raises Malformed where no sizes fit."""
        self.sizes = dict(program.sizes)
        for block in blocks:
            for axis, size in block.sizes.items():
                if self.sizes.setdefault(axis, size) != size:
                    raise Malformed(f"axis {axis} has size {self.sizes[axis]} and {size}")
        self._next: dict[str, str] = {}
        self._parts: dict[str, tuple[str, ...]] = {}
        seen: dict[str, Tensor] = {}
        graphs = [program.tensors, tuple(program.outputs.values()), *(block.tensors for block in blocks)]
        for tensor in (tensor for tensors in graphs for tensor in tensors):
            self._relate(seen.setdefault(tensor.name, tensor).dims, tensor.dims, tensor.name)
        by_source: dict[str, Tensor] = {}
        for tensor in program.tensors if sources else ():
            if tensor.source:
                other = by_source.setdefault(tensor.source, tensor)
                if _cut_alike(other, tensor):
                    self._relate(other.dims, tensor.dims, tensor.source)
        while any(self._find(axis) != axis for axis in self._parts):  # cut before it was found to be another one
            for axis in [axis for axis in self._parts if self._find(axis) != axis]:
                self._cut(axis, self._parts.pop(axis))
        self.equal: Mapping[str, str] = {axis: self._find(axis) for axis in self._next}
        self.products: Mapping[str, tuple[str, ...]] = dict(self._parts)

    def _find(self, axis: str) -> str:
        while axis in self._next:
            axis = self._next[axis]
        return axis

    def _join(self, one: str, other: str) -> None:
        if self._find(one) != self._find(other):
            self._next[self._find(one)] = self._find(other)

    def _cut(self, axis: str, parts: tuple[str, ...]) -> None:
        """Two kernels may cut one axis apart: then their parts are alike here."""
        known = self._parts.setdefault(self._find(axis), parts)
        if len(known) != len(parts):
            raise Malformed(f"axis {axis} is cut into {known} and {parts}")
        for one, other in zip(known, parts, strict=True):
            self._join(one, other)

    def _relate(self, one: Dims, other: Dims, name: str) -> None:
        if len(one) != len(other):
            raise Malformed(f"{name} has {len(one)} dimensions and {len(other)} elsewhere")
        for left, right in zip(one, other, strict=True):
            a, b = [list(side) for side in (left, right)]
            while a and b and self._find(a[0]) == self._find(b[0]):
                a, b = a[1:], b[1:]
            while a and b and self._find(a[-1]) == self._find(b[-1]):
                a, b = a[:-1], b[:-1]
            self._alike(a, b, f"{name} is cut into axes {left} and {right}, which share no finer cut")

    def _alike(self, a: Sequence[str], b: Sequence[str], otherwise: str) -> None:
        """Axes that run over the same places."""
        if len(a) == len(b) == 1:
            self._join(a[0], b[0])
        elif len(a) == 1 and len(b) > 1:
            self._cut(a[0], tuple(b))
        elif len(b) == 1 and len(a) > 1:
            self._cut(b[0], tuple(a))
        elif a or b:
            found = groups(a, self.sizes, b, self.sizes)
            sides = (tuple(axis for pair in found for axis in pair[i]) for i in (0, 1))
            whole = tuple(sides) == (tuple(a), tuple(b))
            if not found or not whole:
                raise Malformed(otherwise)
            for left, right in found:
                if min(len(left), len(right)) == 1:
                    self._alike(left, right, otherwise)
                else:
                    self._cut_finer(left, right, otherwise)

    def _cut_finer(self, a: Sequence[str], b: Sequence[str], otherwise: str) -> None:
        """Two ways to cut one dimension, both parts of a third: 16 x 64 and 8 x 128 of 8 x 2 x 64."""
        ends = [[prod(self.sizes[axis] for axis in side[i:]) for i in range(len(side) + 1)] for side in (a, b)]
        places = sorted({place for side in ends for place in side}, reverse=True)
        if 0 in places or any(outer % inner for outer, inner in pairwise(places)):
            raise Malformed(otherwise)
        atoms: list[tuple[int, int, str]] = []
        for number, (outer, inner) in enumerate(pairwise(places)):
            name = f"{a[0]}*{b[0]}*{number}"
            self.sizes[name] = outer // inner
            atoms.append((outer, inner, name))
        for side, own in zip((a, b), ends, strict=True):
            for axis, (outer, inner) in zip(side, pairwise(own), strict=True):
                parts = tuple(name for high, low, name in atoms if high <= outer and low >= inner)
                self._alike([axis], parts, otherwise)


def _cut_alike(one: Tensor, other: Tensor) -> bool:
    return one.windows == other.windows and [len(dim) for dim in one.dims] == [len(dim) for dim in other.dims]

"""A program of gigabytes, in pieces along an axis: what float64 takes several times over is as large as a piece.

Where nothing is summed over the axis each piece is a program of its own. Else what is reduced along it has to be known
before a piece is evaluated (across.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from torch import Tensor

from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout

LARGE = 1 << 27
"""Elements of a value: 1 GiB in float64, of which a comparison holds a dozen."""


@dataclass(frozen=True)
class Piece:
    """Places first to last (exclusive) along the axis. axis: None where the piece is the whole"""

    program: TensorProgram
    whole: Sizes
    axis: str | None = None
    first: int = 0
    last: int = 0

    def inputs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Of tensors in PyTorch's shapes, what belongs to the piece."""
        return {name: self.of(self.program.tensor(name), tensor) for name, tensor in tensors.items()}

    def of(self, layout: Layout, tensor: Tensor) -> Tensor:
        for number, dim in enumerate(layout.dims):
            if self.axis is not None and self.axis in dim:
                inner = prod(self.whole[axis] for axis in dim[1:])
                return tensor.narrow(number, self.first * inner, (self.last - self.first) * inner)
        return tensor


def pieces(program: TensorProgram, large: int = LARGE, *, across: bool = False) -> Iterator[Piece]:
    """One, where the program is small or there is no such axis. large: elements of the largest value of one.

    across: where there is no other axis, along one that is reduced
    """
    most, of_largest = _largest(program)
    axis = None
    if most > large:
        axis = _longest(program, of_largest.intersection(_axes(program)))
        if axis is None and across:
            axis = _longest(program, of_largest.intersection(_reduced_axes(program)))
    if axis is None:
        yield Piece(program, program.sizes)
        return
    size = program.sizes[axis]
    step = max(1, size * large // most)
    for first in range(0, size, step):
        last = min(first + step, size)
        part = replace(program, sizes={**program.sizes, axis: last - first})
        yield Piece(part, program.sizes, axis, first, last)


def _longest(program: TensorProgram, axes: Collection[str]) -> str | None:
    return max(sorted(axes), key=lambda axis: program.sizes[axis], default=None)


def _axes(program: TensorProgram) -> Iterator[str]:
    """In every output, reduced nowhere, and outermost."""
    reduced = {axis for op in program.ops for axis in op.over}
    for axis in _outermost(program):
        if axis not in reduced and all(axis in tensor.axes for tensor in program.outputs.values()):
            yield axis


def _reduced_axes(program: TensorProgram) -> Iterator[str]:
    """Reduced by operators whose results can be joined from those of parts, and outermost."""
    over = [op for op in program.ops if op.over]
    for axis in _outermost(program):
        reducing = [op for op in over if axis in op.over]
        if reducing and all(op.kind.reduces and op.kind.accumulator is not None for op in reducing):
            yield axis


def _outermost(program: TensorProgram) -> Iterator[str]:
    """In no mask, no position and no window, and outermost in each dimension that holds it."""
    tensors = (*program.tensors, *program.outputs.values())
    masked = {axis for op in program.ops if op.kind.of_places for axis in (*op.rows, *op.columns)}
    for axis in program.sizes:
        if axis in masked or any(axis in tensor.windowed for tensor in tensors):
            continue
        if all(dim[0] == axis for tensor in tensors for dim in tensor.dims if axis in dim):
            yield axis


def _largest(program: TensorProgram) -> tuple[int, frozenset[str]]:
    """Elements of the largest value, and its axes."""
    every = [(prod(program.sizes[axis] for axis in one), frozenset(one)) for one in axes_of(program).values()]
    return max(every, key=lambda one: one[0], default=(1, frozenset[str]()))


def axes_of(program: TensorProgram) -> dict[str, tuple[str, ...]]:
    """Of each value."""
    axes: dict[str, tuple[str, ...]] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            axes[op.name] = program.tensor(op.tensor).axes
        elif op.kind.of_places:
            axes[op.name] = (*op.rows, *op.columns)
        else:
            both = dict.fromkeys(axis for name in op.inputs for axis in axes[name])
            axes[op.name] = tuple(axis for axis in both if op.kind.scans or axis not in op.over)
    return axes

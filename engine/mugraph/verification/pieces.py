"""A program of gigabytes, in pieces along an axis that nothing is summed over: each is a program of its own, and what
float64 takes several times over is as large as a piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def pieces(program: TensorProgram, large: int = LARGE) -> Iterator[Piece]:
    """One, where the program is small or there is no such axis. large: elements of the largest value of one."""
    most = _largest(program)
    axis = max(_axes(program), key=lambda axis: program.sizes[axis], default=None) if most > large else None
    if axis is None:
        yield Piece(program, program.sizes)
        return
    size = program.sizes[axis]
    step = max(1, size * large // most)
    for first in range(0, size, step):
        last = min(first + step, size)
        part = replace(program, sizes={**program.sizes, axis: last - first})
        yield Piece(part, program.sizes, axis, first, last)


def _axes(program: TensorProgram) -> Iterator[str]:
    """In every output, reduced nowhere, in no mask, no position and no window, and outermost in each dimension that
    holds it."""
    tensors = (*program.tensors, *program.outputs.values())
    reduced = {axis for op in program.ops for axis in op.over}
    masked = {axis for op in program.ops if op.kind.of_places for axis in (*op.rows, *op.columns)}
    for axis in program.sizes:
        if axis in reduced | masked or any(axis in tensor.windowed for tensor in tensors):
            continue
        if any(axis not in tensor.axes for tensor in program.outputs.values()):
            continue
        if all(dim[0] == axis for tensor in tensors for dim in tensor.dims if axis in dim):
            yield axis


def _largest(program: TensorProgram) -> int:
    """Elements of the largest value."""
    axes: dict[str, tuple[str, ...]] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            axes[op.name] = program.tensor(op.tensor).axes
        elif op.kind.of_places:
            axes[op.name] = (*op.rows, *op.columns)
        else:
            both = dict.fromkeys(axis for name in op.inputs for axis in axes[name])
            axes[op.name] = tuple(axis for axis in both if op.kind.scans or axis not in op.over)
    return max((prod(program.sizes[axis] for axis in one) for one in axes.values()), default=1)

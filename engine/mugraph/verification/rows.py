"""Which dimensions of a program's tensor its rows run along."""

from __future__ import annotations

from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor


def reduced(program: TensorProgram, tensor: Tensor) -> tuple[int, ...]:
    """The tensor's dimensions along which something is summed, all at once or place by place, or the largest is looked
    for."""
    over = {axis for op in program.ops if op.kind.reduces or op.kind.scans for axis in op.over}
    return tuple(position for position, dim in enumerate(tensor.dims) if over.intersection(dim))

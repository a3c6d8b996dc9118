"""Tensor programs: what the user's region computes (the reference of every proof and the input of every search)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.ir.lax import why_not_lax
from mugraph.ir.ops import Op, Tf32
from mugraph.ir.tensors import Tensor


@dataclass(frozen=True)
class TensorProgram:
    """A DAG of operators over named axes (kinds LOAD, CONST, MASK, POSITION, element-wise, SUM, DOT; no ACCUM, no
    STORE).

    sizes:   every axis that occurs -> its size
    tensors: the inputs, each loaded by exactly one LOAD
    ops:     in an order in which inputs come before uses
    outputs: value name -> the tensor it is written to (its dims say the memory order; contiguous)
    least:   axes whose size is known at run time only -> the least it may be; `sizes` has the largest
    sized:   where several sizes vary: such an axis -> the first axis with the same size, or a multiple of it; the axes
             of the size that matters most come first
    """

    name: str
    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    outputs: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    least: Mapping[str, int] = field(default_factory=dict[str, int])
    sized: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def varying_together(self) -> tuple[tuple[str, ...], ...]:
        """The axes of each size that varies, those of the size that matters most first."""
        groups: dict[str, list[str]] = {}
        for axis in (*self.sized, *(axis for axis in self.least if axis not in self.sized)):
            groups.setdefault(self.sized.get(axis, ""), []).append(axis)
        return tuple(map(tuple, groups.values()))

    @property
    def leading(self) -> tuple[str, ...]:
        """The axes of the size that matters most: schedules are chosen by it."""
        return self.varying_together[0] if self.least else ()

    def op(self, name: str) -> Op:
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)

    def tensor(self, name: str) -> Tensor:
        """An input, an output, or an index by which rows of an input are looked up."""
        for tensor in (*self.tensors, *self.outputs.values(), *self.indices):
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    @property
    def indices(self) -> tuple[Tensor, ...]:
        """What says which rows of its tensors are read: inputs too, of which no operator knows."""
        return tuple({index.name: index for tensor in self.tensors for index in tensor.indices}.values())

    @property
    def compute_ops(self) -> tuple[Op, ...]:
        """Operators other than loads, constants, masks and positions: what the papers count."""
        return tuple(op for op in self.ops if not op.kind.is_leaf)

    @property
    def is_copy(self) -> bool:
        """Does it compute nothing, and write a tensor in another order in memory?"""
        if len(self.ops) > 1 or not self.tensors or self.tensors[0].windows or len(self.outputs) != 1:
            return False
        lying = [self._lying(tensor) for tensor in (*self.tensors, *self.outputs.values())]
        return lying[0] != lying[1]

    def _lying(self, tensor: Tensor) -> list[str]:
        """Its axes, that with the longest steps in memory first."""
        steps = tensor.axis_strides(self.sizes)
        return sorted((axis for axis in tensor.axes if self.sizes[axis] > 1), key=lambda axis: -steps[axis])

    @property
    def tf32(self) -> frozenset[Tf32]:
        """PyTorch's settings by which its products may take TF32."""
        return frozenset(op.tf32 for op in self.ops if op.tf32)

    @property
    def is_lax(self) -> bool:
        """In the Lax fragment of Mirage §5 (lax.py)."""
        return why_not_lax(self.ops) is None

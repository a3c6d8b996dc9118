"""What the arguments of a program's kernels are, to be made up for measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.plans.scales import input_scale
from mugraph.tune.messages import InputSpec


def input_specs(program: TensorProgram, names: Sequence[str]) -> tuple[InputSpec, ...]:
    """Inputs at the program's shapes."""
    rows = {one.name: one.rows for tensor in program.tensors for one in tensor.looked_up.values()}
    return tuple(_spec(program, program.tensor(name), rows) for name in names)


def _spec(program: TensorProgram, tensor: Tensor, rows: Mapping[str, int]) -> InputSpec:
    """rows: by the name of an index, of the tensor that it picks rows of"""
    shape, scale = tensor.memory_shape(program.sizes), input_scale(program, tensor.name)
    drawn = InputSpec(shape, tensor.strides, tensor.dtype, scale, skew=tensor.skew)
    return replace(drawn, high=rows[tensor.name]) if tensor.name in rows else drawn

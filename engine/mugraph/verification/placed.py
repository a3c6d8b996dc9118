"""Tensors as they lie in memory: each in a buffer of its own, in the middle of NaN."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import torch
from torch import Tensor

from mugraph.ir.dtypes import READ
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor as Layout
from mugraph.verification.looked_up import tables
from mugraph.verification.roundings import TORCH_TYPES

_GUARD = 1024  # elements; keeps the start of the tensor aligned


def in_memory(program: TensorProgram, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a kernel is given: tensors of which rows are looked up as a whole, and the indices, with the others."""
    found = dict(inputs)
    for name, data in tables(program, inputs).items():
        tensor = program.tensor(name)
        found[name] = place(data, tensor, tensor.memory_shape(program.sizes))
    return found


def place(data: Tensor, tensor: Layout, shape: tuple[int, ...]) -> Tensor:
    """The data (size 1 in expanded dimensions) in the tensor's type and strides, in the middle of a buffer of NaN, as
    far from a multiple of 16 bytes as there."""
    reach = sum((size - 1) * stride for size, stride in zip(data.shape, tensor.strides, strict=True)) + 1
    kind = TORCH_TYPES[tensor.dtype]
    read = READ[tensor.dtype]
    outside = torch.full((), read.largest if read.is_whole else nan, device=data.device).to(kind)
    buffer = outside.expand(reach + 2 * _GUARD + tensor.skew).clone()
    view = buffer.as_strided(data.shape, tensor.strides, _GUARD + tensor.skew)
    view.copy_(data)
    return view.expand(shape)

"""Numbers in the middle between two that a type of eight bits has, from computations that round nothing.

What is scaled by the largest number of its row, or by a number that is read, is so then by a power of two: the largest
numbers are the type's own, times such powers, and all that is read beside is one. In some rows all is larger than the
type's largest number, which shows what becomes of it where the program does not clamp.
"""

from __future__ import annotations

from math import ceil, log2, prod

import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPUTED, READ, DType, is_written, largest
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor as Layout
from mugraph.verification.rows import reduced

_NUMBERS = 255
"""Whole numbers up to it are numbers of every type that programs compute with."""
_FINER = 4
"""Powers of two by which some of them are smaller."""
_LARGEST_AT = 16
"""One of so many elements of a row is a largest one: rows may be cut into blocks that have scales of their own."""
_SCALES = (1.0, 4.0, 0.25, 1.0)
"""Of rows, one after the other."""


def codes_of(program: TensorProgram) -> DType | None:
    """The type of eight bits that it computes; None where it computes none."""
    found = (tensor.dtype for tensor in program.outputs.values())
    return next((dtype for dtype in found if is_written(dtype) and dtype not in COMPUTED), None)


def of_ties(program: TensorProgram, tensor: Layout, generator: torch.Generator) -> Tensor:
    """For a tensor of the program, in its shape; of size 1 where it is expanded."""
    shape = [1 if stride == 0 else size for size, stride in zip(_shape(program, tensor), tensor.strides, strict=True)]
    computed = [one for one in program.tensors if one.dtype in COMPUTED]
    most = max((prod(_shape(program, one)) for one in computed), default=0)
    code = codes_of(program)
    if code is None or prod(shape) < most:
        return torch.ones(shape, dtype=torch.float64, device=generator.device)
    kind = READ[code]
    rows = [dim for dim in range(len(shape)) if dim not in reduced(program, tensor)]
    top = torch.full((), kind.largest, dtype=torch.float64, device=generator.device)

    def whole(low: int, high: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator, device=generator.device).to(torch.float64)

    finest = ceil(log2(kind.largest / _NUMBERS))
    data = whole(-_NUMBERS, _NUMBERS + 1) * torch.exp2(finest - whole(0, _FINER))
    data = data.clamp(-top, top)
    along = next((dim for dim in reversed(range(len(shape))) if dim not in rows), len(shape) - 1)
    if shape:
        places = data.transpose(along, -1)[..., ::_LARGEST_AT]
        places.copy_(torch.where(places < 0, -top, top))
    scales = [one for one in _SCALES if one * kind.largest < largest(tensor.dtype)]
    if rows and shape:
        data = data * _of_rows(shape, rows[0], scales, data)
    return data


def _of_rows(shape: list[int], dim: int, scales: list[float], like: Tensor) -> Tensor:
    every = torch.tensor(scales, dtype=like.dtype, device=like.device)
    along = every[torch.arange(shape[dim], device=like.device) % len(scales)]
    return along.reshape([-1 if d == dim else 1 for d in range(len(shape))])


def _shape(program: TensorProgram, tensor: Layout) -> tuple[int, ...]:
    return tensor.shape(program.sizes)

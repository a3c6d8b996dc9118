"""Tables of which a program looks rows up, in torch.

A program is evaluated on the rows that are read, one after the other (ir/lookups.py): its own inputs. A kernel gets the
table that they are rows of, and the index. Rows that the index does not say are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np
import torch
from torch import Tensor

from mugraph.ir.dtypes import ELEMENTS
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.verification.index_numbers import numbers_of, rows_of


def gathered(program: TensorProgram, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The program's own inputs, of what is in memory."""
    found = dict(inputs)
    for tensor in program.tensors:
        for dim, one in tensor.looked_up.items():
            rows = one.rows_at(inputs[one.name].reshape(-1).to("cpu", torch.int64).numpy())
            data = inputs[tensor.name].reshape(tensor.memory_shape(program.sizes))
            found[tensor.name] = data.index_select(dim, torch.as_tensor(rows).to(data.device))
    return found


def agree(program: TensorProgram, inputs: Mapping[str, Tensor]) -> None:
    """Make rows equal that are one row of a table."""
    numbers = numbers_of(program)
    for tensor in program.tensors:
        for dim, rows in rows_of(tensor, numbers).items():
            first = [int(np.flatnonzero(rows == row)[0]) for row in rows]
            data = inputs[tensor.name]
            if first != list(range(len(first))):
                data.copy_(data.index_select(dim, torch.tensor(first, device=data.device)))


def tables(program: TensorProgram, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors in memory, dense, and the indices, by their names: those for which the program has these inputs."""
    numbers, found = numbers_of(program), dict[str, Tensor]()
    for tensor in program.tensors:
        for dim, rows in rows_of(tensor, numbers).items():
            data = inputs[tensor.name]
            where = torch.as_tensor(rows).to(data.device)
            found[tensor.name] = _unread(tensor, program.sizes, data).index_copy_(dim, where, data)
        for index in tensor.indices:
            kind: torch.dtype = getattr(torch, ELEMENTS[index.dtype].torch)
            found[index.name] = torch.as_tensor(numbers[index.name]).to(inputs[tensor.name].device, kind)
    return found


def _unread(tensor: Layout, sizes: Sizes, like: Tensor) -> Tensor:
    shape = tensor.memory_shape(sizes)
    return torch.full(shape, nan if like.is_floating_point() else 0, dtype=like.dtype, device=like.device)

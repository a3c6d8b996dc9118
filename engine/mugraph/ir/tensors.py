"""Tensors in device memory, their dimensions made of named axes.

A *dimension* is what PyTorch sees (`shape[i]`); an *axis* is what the algebra sees. One dimension may hold several
axes, outermost first: a query weight of shape [heads * head_dim, hidden] has dims
`(("heads", "head_dim"), ("hidden",))`.
A dimension of size 1 that no axis runs over is the empty tuple. Names of axes are unique in one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

type_names = ("f16", "bf16", "f32")
DType = Literal["f16", "bf16", "f32"]
ITEMSIZE: Mapping[str, int] = {"f16": 2, "bf16": 2, "f32": 4}

Dims = tuple[tuple[str, ...], ...]
Sizes = Mapping[str, int]
"""Axis name -> number of elements."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in device memory.

    name:    unique in its program, a Python identifier
    dims:    axes of each dimension, outermost first
    strides: of each dimension, in elements (0 for an expanded one)
    dtype:   of the storage
    source:  what the user's code calls it ("x", "self.up.weight"). Two tensors with one source are one piece of memory
             under two sets of axis names: `x @ x.T` is `x[i, k]` and `x[j, k]`.
    """

    name: str
    dims: Dims
    strides: tuple[int, ...]
    dtype: DType
    source: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes in memory order, outermost dimension first."""
        return tuple(axis for dim in self.dims for axis in dim)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(prod(sizes[axis] for axis in dim) for dim in self.dims)

    def axis_strides(self, sizes: Sizes) -> dict[str, int]:
        """Distance in elements between neighbours along each axis."""
        strides: dict[str, int] = {}
        for dim, stride in zip(self.dims, self.strides, strict=True):
            for axis in reversed(dim):
                strides[axis] = stride
                stride *= sizes[axis]
        return strides


def contiguous_strides(dims: Dims, sizes: Sizes) -> tuple[int, ...]:
    """Row-major strides in elements, one per dimension."""
    strides: list[int] = []
    step = 1
    for dim in reversed(dims):
        strides.append(step)
        step *= prod(sizes[axis] for axis in dim)
    return tuple(reversed(strides))

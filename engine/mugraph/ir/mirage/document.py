"""The JSON of a checkpoint: a list of kernel graphs, each a list of operators (Mirage's `operator json()`).

A graph-defined kernel is an operator with a block graph of its own. Tensors are known by number (`guid`), and have
their sizes; those in device memory lie row by row.
"""

from __future__ import annotations

import msgspec


class Tensor(msgspec.Struct):
    """dim: sizes, of which the first `num_dims` count"""

    guid: int
    dim: tuple[int, ...]
    num_dims: int
    data_type: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.dim[: self.num_dims]


class Map(msgspec.Struct):
    """Dimension of the grid -> dimension of the tensor that it partitions; -1: none, the tensor is replicated."""

    x: int
    y: int
    z: int


class Grid(msgspec.Struct):
    x: int
    y: int
    z: int


class BlockOperator(msgspec.Struct):
    """dtensor, input_map, forloop_dim: of an input iterator; -1: every iteration reads all of it
    dtensor, output_map: of an output saver
    reduce_dim: of a reduction"""

    op_type: str
    input_tensors: tuple[Tensor, ...] = ()
    output_tensors: tuple[Tensor, ...] = ()
    dtensor: Tensor | None = None
    input_map: Map | None = None
    output_map: Map | None = None
    forloop_dim: int = -1
    reduce_dim: int = -1


class Block(msgspec.Struct):
    """reduction_dimx: columns that a reduction "to x" leaves"""

    grid_dim: Grid
    block_dim: Grid
    forloop_range: int
    operators: tuple[BlockOperator, ...]
    reduction_dimx: int = 1


class KernelOperator(msgspec.Struct):
    op_type: str
    input_tensors: tuple[Tensor, ...] = ()
    output_tensors: tuple[Tensor, ...] = ()
    input_strides: tuple[int, ...] = ()
    output_strides: tuple[int, ...] = ()
    bgraph: Block | None = None


Graph = tuple[KernelOperator, ...]

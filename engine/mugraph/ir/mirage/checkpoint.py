"""A checkpoint's kernel graphs as μGraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from mugraph.ir.dtypes import DType
from mugraph.ir.mirage.axes import Axes, Unlike
from mugraph.ir.mirage.block import BlockReader
from mugraph.ir.mirage.document import Block, BlockOperator, Graph, Grid, KernelOperator, Map
from mugraph.ir.mirage.document import Tensor as Described
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.tensors import Dims, Tensor, contiguous_strides

_FLOAT32, _HALF = 950, (940, 941)


@dataclass(frozen=True)
class Unreadable:
    """A graph of which no μGraph can be made. reason: a sentence"""

    name: str
    reason: str


def is_checkpoint(document: object) -> bool:
    """Whether a JSON document is one, or one graph of one."""
    first = document
    while isinstance(first, list) and first:
        first = cast("list[object]", first)[0]
    return isinstance(document, list) and isinstance(first, dict) and "op_type" in first


def read_checkpoint(document: object, half: DType) -> list[MuGraph | Unreadable]:
    """half: the element type of 16 bits that the program has: Mirage's numbers for the two were exchanged between its
    versions."""
    listed = cast("list[object]", document)
    graphs = listed if listed and isinstance(listed[0], list) else [listed]
    return [_graph(f"mirage_{number}", graph, half) for number, graph in enumerate(graphs)]


def _graph(name: str, document: object, half: DType) -> MuGraph | Unreadable:
    try:
        graph = msgspec.convert(document, Graph)
        try:
            return _KernelGraph(name, half, shared=True).read(graph)
        except Unlike:  # no names of axes serve all kernels: each gets its own
            return _KernelGraph(name, half, shared=False).read(graph)
    except (msgspec.ValidationError, ValueError) as error:
        return Unreadable(name, f"it cannot be read: {error}")


class _KernelGraph:
    """shared: an axis has one name in all kernels"""

    def __init__(self, name: str, half: DType, *, shared: bool) -> None:
        self.name = name
        self.axes = Axes("a") if shared else None
        self.known: dict[str, Dims] = {}
        self.half: DType = half
        self.memory: dict[int, Tensor] = {}
        self.readers: list[BlockReader] = []
        self.outputs: list[str] = []

    def read(self, graph: Graph) -> MuGraph:
        """Raises ValueError with what is wrong."""
        last = {
            operator.input_tensors[0].guid: operator.output_strides
            for operator in graph
            if operator.op_type == "kn_output_op" and operator.input_tensors
        }
        for operator in graph:
            if operator.op_type == "kn_input_op":
                self._make(operator.output_tensors, "input", {operator.output_tensors[0].guid: operator.input_strides})
            elif operator.op_type == "kn_output_op":
                self.outputs.append(self._known(operator.input_tensors[0]).name)
            else:
                self._kernel(operator, last)
        kernels = [reader.kernel() for reader in self.readers]
        inputs = [tensor.name for tensor in self.memory.values() if tensor.name.startswith("input")]
        seen = {t.name: t for kernel in reversed(kernels) for t in kernel.block.tensors}
        idle = [name for name in inputs if name not in seen]
        if idle:
            raise ValueError(f"{idle[0]} is read by no kernel")
        sizes = {axis: size for kernel in kernels for axis, size in kernel.block.sizes.items()}
        tensors = tuple(seen[tensor.name] for tensor in self.memory.values())
        return MuGraph(self.name, sizes, tensors, tuple(inputs), tuple(self.outputs), tuple(kernels))

    def _kernel(self, operator: KernelOperator, last: dict[int, tuple[int, ...]]) -> None:
        for tensor in operator.input_tensors:
            self._known(tensor)
        readable = {tensor.guid: self.memory[tensor.guid] for tensor in operator.input_tensors}
        name = f"k{len(self.readers)}"
        written = self._make(operator.output_tensors, f"{name}_out", last)
        block = operator.bgraph if operator.op_type == "kn_customized_op" else _one_block(operator)
        if block is None:
            raise ValueError(f"{operator.op_type} is not read")
        own = self.axes is None
        axes = self.axes or Axes(f"{name}_")
        self.readers.append(BlockReader(name, block, axes, None if own else self.known))
        self.readers[-1].run(readable, written)

    def _make(
        self, described: Sequence[Described], stem: str, strides: dict[int, tuple[int, ...]]
    ) -> dict[int, Tensor]:
        """New tensors in device memory. Their axes are the kernels' to say: here each dimension has one."""
        made: dict[int, Tensor] = {}
        for tensor in described:
            shape = Axes("")
            dims = tuple(shape.new(size) for size in tensor.shape)
            own = strides.get(tensor.guid) or contiguous_strides(dims, shape.sizes())
            if len(own) != len(dims):
                raise ValueError(f"a tensor of {len(dims)} dimensions has {len(own)} strides")
            made[tensor.guid] = Tensor(f"{stem}{len(self.memory) + len(made)}", dims, tuple(own), self._dtype(tensor))
        self.memory.update(made)
        return made

    def _dtype(self, tensor: Described) -> DType:
        if tensor.data_type in _HALF:
            return self.half
        if tensor.data_type == _FLOAT32:
            return "f32"
        raise ValueError(f"its element type {tensor.data_type} is not read")

    def _known(self, tensor: Described) -> Tensor:
        if tensor.guid not in self.memory:
            raise ValueError("a kernel reads a tensor that nothing has made")
        return self.memory[tensor.guid]


def _one_block(operator: KernelOperator) -> Block | None:
    """A pre-defined kernel as a graph of one block, which computes the same; None for what is no operator of blocks."""
    if not operator.op_type.startswith("kn_") or len(operator.output_tensors) != 1:
        return None
    alone = Map(-1, -1, -1)
    loads = [
        BlockOperator("tb_input_op", (), (tensor,), dtensor=tensor, input_map=alone)
        for tensor in operator.input_tensors
    ]
    what = f"tb_{operator.op_type.removeprefix('kn_')}"
    compute = BlockOperator(what, operator.input_tensors, operator.output_tensors)
    (out,) = operator.output_tensors
    store = BlockOperator("tb_output_op", (out,), (), dtensor=out, output_map=alone)
    return Block(Grid(1, 1, 1), Grid(128, 1, 1), 1, (*loads, compute, store))

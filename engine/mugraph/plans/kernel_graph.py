"""The μGraph of a region: its generated kernels and its plain PyTorch calls, over the tensors between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mugraph.ir.block import BlockGraph
from mugraph.ir.calls import operands
from mugraph.ir.dtypes import DType
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.names import Scope, numbered, unused
from mugraph.ir.region import Call, PlainCalls, Region
from mugraph.ir.tensors import Tensor
from mugraph.optimizer.nodes import LIBRARY, node_of, scheduled
from mugraph.plans.plan import KernelStep
from mugraph.trace.regions.emit_call import NotReplayable, call_text
from mugraph.trace.regions.value_names import value_names


@dataclass
class _Tensors:
    """Tensors of the kernel graph as they are met. by_value: the name plain calls use for a value."""

    region: Region
    scope: Scope
    sizes: dict[str, int]
    tensors: dict[str, Tensor]
    by_value: dict[int, str]

    def add(self, tensor: Tensor, sizes: Mapping[str, int], value: int | None) -> None:
        """Adds a kernel's tensor. An axis gets a new name if its name already stands for another size.

        value: number of the region's value that it is; None for what one kernel of a step hands to the next
        """
        if tensor.name in self.tensors:
            return
        names: dict[str, str] = {}
        for axis in tensor.axes:
            others = {name for name, size in self.sizes.items() if size != sizes[axis]}
            names[axis] = unused(numbered(axis), {*others, *names.values()})
            self.sizes[names[axis]] = sizes[axis]
        dims = tuple(tuple(names[axis] for axis in dim) for dim in tensor.dims)
        self.tensors[tensor.name] = replace(tensor, dims=dims)
        if value is not None:
            self.by_value.setdefault(value, tensor.name)

    def plain(self, value: int, wanted: str) -> str:
        """Name of a value that plain calls read or write."""
        if value not in self.by_value:
            info = self.region.values[value]
            name = self.scope.unique(wanted)
            dims: list[tuple[str, ...]] = []
            for position, size in enumerate(info.shape):
                axis = f"{name}_{position}"
                self.sizes[axis] = size
                dims.append((axis,))
            self.tensors[name] = Tensor(name, tuple(dims), info.strides, cast(DType, info.dtype), "")
            self.by_value[value] = name
        return self.by_value[value]


def kernel_graph(name: str, region: Region, steps: Sequence[KernelStep | PlainCalls]) -> MuGraph:
    """One node per generated kernel and per plain call, in the order they run."""
    taken = {n for step in steps if isinstance(step, KernelStep) for n in (*step.unit.inputs, *step.unit.outputs)}
    table = _Tensors(region, Scope(taken), {}, {}, {})
    known = {**value_names(region.as_made), **value_names(region)}
    generated = [_kernels(step, table.scope) if isinstance(step, KernelStep) else () for step in steps]
    for step, made in zip(steps, generated, strict=True):
        if isinstance(step, KernelStep):
            ties = {**step.unit.inputs, **step.unit.outputs}
            for block, _ in map(scheduled, made):
                indices = {index.name: index for tensor in block.tensors for index in tensor.indices}
                for tensor in (*block.tensors, *indices.values()):
                    table.add(tensor, block.sizes, ties.get(tensor.name))
    kernels: list[GraphKernel | LibraryKernel] = []
    names = Scope([kernel.name for made in generated for kernel in made])
    for step, made in zip(steps, generated, strict=True):
        if isinstance(step, KernelStep):
            kernels += made
            continue
        for call in step.calls:
            kernels.append(_library(call, table, known, names))
    inputs = tuple(dict.fromkeys(table.by_value[v.value] for v in region.live_ins if v.value in table.by_value))
    outputs = tuple(dict.fromkeys(table.by_value[v.value] for v in region.live_outs if v.value in table.by_value))
    together = tuple(group for step in steps if isinstance(step, KernelStep) for group in step.one_launch)
    combined = tuple(pair for step in steps if isinstance(step, KernelStep) for pair in step.combined)
    tensors = tuple(table.tensors.values())
    return MuGraph(name, table.sizes, tensors, inputs, outputs, tuple(kernels), together, combined)


def _kernels(step: KernelStep, scope: Scope) -> tuple[GraphKernel | LibraryKernel, ...]:
    """A step's kernels; what they hand to one another gets names of its own."""
    ties = {**step.unit.inputs, **step.unit.outputs}
    pairs = [scheduled(kernel) for kernel in step.kernels]
    handed = dict.fromkeys(t.name for block, _ in pairs for t in block.tensors if t.name not in ties)
    new = {name: scope.unique(name) for name in handed}
    if all(old == name for old, name in new.items()):
        return step.kernels

    def renamed(kernel: GraphKernel | LibraryKernel, block: BlockGraph) -> GraphKernel | LibraryKernel:
        tensors = tuple(replace(t, name=new.get(t.name, t.name)) for t in block.tensors)
        ops = tuple(replace(op, tensor=new.get(op.tensor, op.tensor)) for op in block.ops)
        block = replace(block, tensors=tensors, ops=ops)
        return replace(kernel, block=block) if isinstance(kernel, GraphKernel) else node_of(block, LIBRARY)

    return tuple(renamed(kernel, block) for kernel, (block, _) in zip(step.kernels, pairs, strict=True))


def _library(call: Call, table: _Tensors, known: Mapping[int, str], names: Scope) -> LibraryKernel:
    read = tuple(dict.fromkeys(operands(call)))
    inputs = tuple(table.plain(value, known.get(value, "value")) for value in read)
    outputs = tuple(table.plain(v, known.get(v, "value")) for v in call.outputs if v not in read)
    # What is found on a device says which one it is: a live-in, before what is computed.
    found = (live_in.value for live_in in table.region.live_ins if live_in.value in table.by_value)
    try:
        text = call_text(call, {value: table.by_value[value] for value in (*found, *table.by_value)})
    except NotReplayable:
        text = call.target
    return LibraryKernel(names.unique(call.target.rsplit(".", 1)[-1].strip("_")), text, inputs, outputs)

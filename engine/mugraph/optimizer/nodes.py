"""Nodes of a kernel graph from scheduled block graphs, and back."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.optimizer.thread_fusion import fuse_threads

LIBRARY = Schedule((), library=True)


def node_of(block: BlockGraph, schedule: Schedule) -> GraphKernel | LibraryKernel:
    """A graph-defined kernel with its thread graphs, or a pre-defined one. Raises ValueError for a schedule that asks
    for a pre-defined kernel where there is none."""
    if not schedule.library:
        return GraphKernel(block.name, block, schedule, fuse_threads(block))
    call = library_call(block)
    if call is None:
        raise ValueError(f"no library call computes {block.name}")
    inputs, outputs = (tuple(tensor.name for tensor in tensors) for tensors in (block.inputs, block.outputs))
    return LibraryKernel(block.name, call.shown, inputs, outputs, block)


def scheduled(kernel: GraphKernel | LibraryKernel) -> tuple[BlockGraph, Schedule]:
    """Raises ValueError for a library kernel of which nothing is known but its call."""
    if kernel.block is None:
        raise ValueError(f"what {kernel.name} computes is not known")
    return kernel.block, kernel.schedule if isinstance(kernel, GraphKernel) else LIBRARY

"""Checks what kernels assume about the memory between them and around them.

Inputs and outputs must have the program's shapes, strides, element types and windows. What one kernel stores for
another must lie where that one reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.windows import Window
from mugraph.verification.evaluate import Malformed


def check_memory(program: TensorProgram, blocks: Sequence[BlockGraph]) -> None:
    """Checks block graphs that run one after the other and have the program's names for tensors. Raises Malformed."""
    known: dict[str, tuple[Tensor, Sizes, str]] = {
        tensor.name: (tensor, program.sizes, "the program's")
        for tensor in (*program.tensors, *program.outputs.values())
    }
    inputs = {tensor.name: tensor for tensor in program.tensors}
    for block in blocks:
        for tensor in block.tensors:
            if tensor.name not in known:
                known[tensor.name] = (tensor, block.sizes, f"{block.name}'s")
                continue
            other, sizes, whose = known[tensor.name]
            ours, theirs = tensor.in_words(block.sizes), other.in_words(sizes)
            if ours != theirs:
                raise Malformed(f"{block.name} takes {tensor.name} to be {ours}; {whose} is {theirs}")
            if tensor.name in inputs and (mine := _windows(tensor, block.sizes)) != _windows(other, sizes):
                raise Malformed(f"{block.name} reads {tensor.name} through other windows than the program: {mine}")


def _windows(tensor: Tensor, sizes: Sizes) -> tuple[Window, ...]:
    """Windows that matter. Leaves out steps along a dimension with one position, and windows that read each place
    once."""
    found: list[Window] = []
    for window in tensor.windows:
        positions, taps = (_elements(part, sizes) for part in window.split(tensor.dims[window.dim]))
        edge = window.edge and window.leaves
        plain = replace(
            window,
            taps=0,
            stride=window.stride if positions > 1 else 1,
            dilation=window.dilation if taps > 1 or edge else 1,
            edge=edge,
            reverse=window.reverse and positions > 1,
        )
        if plain != Window(window.dim, 0) or min(positions, taps) > 1:
            found.append(plain)
    return tuple(found)


def _elements(axes: Sequence[str], sizes: Sizes) -> int:
    count = 1
    for axis in axes:
        count *= sizes[axis]
    return count


def check_sources(program: TensorProgram, tensors: Sequence[Tensor]) -> None:
    """Tensors with one source are one piece of memory. If they are so in the graph they must be so in the program,
    and the graph may not take a tensor of the program for another one. Raises Malformed.

    tensors: of the kernel graph and of its kernels, with the program's names
    """
    memory: Mapping[str, str] = {tensor.name: tensor.source or tensor.name for tensor in program.tensors}
    first: dict[str, str] = {}
    said: dict[str, str] = {}
    for tensor in tensors:
        if not tensor.source:
            continue
        if said.setdefault(tensor.name, tensor.source) != tensor.source:
            raise Malformed(f"{tensor.name} is said to be {said[tensor.name]} and {tensor.source}")
        if tensor.name not in memory:
            continue
        other = first.setdefault(tensor.source, tensor.name)
        if memory[other] != memory[tensor.name]:
            raise Malformed(f"{other} and {tensor.name} are said to be one piece of memory; the program has two")

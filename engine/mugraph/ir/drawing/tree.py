"""A μGraph as a tree of text: kernels, their grid, loops, operators with the shapes of their tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mugraph.ir.drawing.words import (
    beside_words,
    constants,
    expression,
    grid_words,
    launch_words,
    loop_words,
    tile_shape,
)
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.numbers import said
from mugraph.ir.ops import Kind
from mugraph.ir.placement import placement


def draw_tree(mugraph: MuGraph, width: int = 100) -> str:
    """Lines of at most `width` columns; what does not fit ends in `…`."""
    inputs, outputs = ", ".join(mugraph.inputs), ", ".join(mugraph.outputs)
    root = _Node(f"{mugraph.name}({inputs}) → {outputs}")
    for tensor in mugraph.tensors:
        shape = ", ".join(str(size) for size in tensor.memory_shape(mugraph.sizes))
        role = "input" if tensor.name in mugraph.inputs else "output" if tensor.name in mugraph.outputs else "between"
        source = f"  {said(tensor.source)}" if tensor.source not in ("", tensor.name) else ""
        rows = "".join(f"  its rows {one.name}" for one in tensor.looked_up.values())
        root.children.append(_Node(f"{role} {tensor.name}  {tensor.dtype}[{shape}]{source}{rows}"))
    for kernel in mugraph.kernels:
        root.children.append(_library(kernel) if isinstance(kernel, LibraryKernel) else _kernel(kernel, mugraph))
    return "\n".join(_cut(line, width) for line in _lines(root, "", "")) + "\n"


@dataclass
class _Node:
    text: str
    children: list[_Node] = field(default_factory=list["_Node"])


def _library(kernel: LibraryKernel) -> _Node:
    return _Node(f"library {kernel.name}: {', '.join(kernel.outputs)} = {kernel.call}")


def _kernel(kernel: GraphKernel, mugraph: MuGraph) -> _Node:
    block, schedule = kernel.block, kernel.schedule
    beside = beside_words(mugraph, kernel.name)
    root = _Node(f"kernel {kernel.name}  {grid_words(kernel)}; {launch_words(schedule)}{beside}")
    numbers = constants(block)
    placed = placement(block)
    inside = {op.name: thread.name for thread in kernel.threads for op in thread.ops}
    shown = [op for op in block.ops if op.kind is not Kind.CONST]
    names = max((len(op.name) for op in shown), default=0)
    expressions = max((len(expression(op, numbers)) for op in shown), default=0)
    open_loops: list[tuple[str, _Node]] = []
    for op in shown:
        around = placed[op.name]
        while open_loops and tuple(axis for axis, _ in open_loops) != around[: len(open_loops)]:
            open_loops.pop()
        for axis in around[len(open_loops) :]:
            node = _Node(loop_words(axis, block, schedule))
            (open_loops[-1][1] if open_loops else root).children.append(node)
            open_loops.append((axis, node))
        shape = ", ".join(f"{axis}={size}" for axis, size in tile_shape(op, block, schedule).items())
        thread = f"  thread graph {inside[op.name]}" if op.name in inside else ""
        line = f"{op.name:<{names}}  {expression(op, numbers):<{expressions}}  [{shape}]{thread}"
        (open_loops[-1][1] if open_loops else root).children.append(_Node(line))
    return root


def _lines(node: _Node, first: str, rest: str) -> Iterator[str]:
    yield first + node.text
    for index, child in enumerate(node.children):
        last = index == len(node.children) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _cut(line: str, width: int) -> str:
    line = line.rstrip()
    return line if len(line) <= width else line[: width - 1] + "…"

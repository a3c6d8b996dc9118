"""What all ways to cut a topology in two have in common: its operators in parts of an axis, and the two kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides


def above(block: BlockGraph, names: set[str], stop: Iterable[str] = ()) -> list[Op]:
    """The operators that compute these values, themselves included; what the values in `stop` come from is left out."""
    needed, stop = set(names), set(stop)
    for op in reversed(block.ops):
        if op.name in needed and op.name not in stop:
            needed.update(op.inputs)
    return [op for op in block.ops if op.name in needed]


def in_parts_of(op: Op, axis: str, split: str, part: str, *, varies: bool) -> Op:
    """The operator with the axis as two: which part (`split`), and the place in it (`part`).

    varies: its value is another one in each part
    """
    axes = {part if a == axis else a for a in op.axes}
    if varies:
        axes.add(split)
    over = tuple(sorted(part if a == axis else a for a in op.over))
    rows, columns = (
        tuple(new for a in side for new in ((split, part) if a == axis else (a,))) for side in (op.rows, op.columns)
    )
    return replace(op, axes=tuple(sorted(axes)), over=over, rows=rows, columns=columns)


def in_parts(tensor: Tensor, axis: str, split: str, part: str) -> Tensor:
    """The tensor with the axis as two."""
    dims = tuple(tuple(a for own in dim for a in ((split, part) if own == axis else (own,))) for dim in tensor.dims)
    return replace(tensor, dims=dims)


def order_in_memory(axes: Iterable[str], block: BlockGraph) -> list[str]:
    """As the block graph's outputs have them, then the others."""
    memory = list(dict.fromkeys(a for tensor in block.outputs for a in tensor.axes))
    return sorted(axes, key=lambda a: (memory.index(a) if a in memory else len(memory), a))


def unfinished(name: str, axes: tuple[str, ...], sizes: Sizes) -> Tensor:
    """Sums that are not finished keep the accumulators' precision."""
    dims = tuple((axis,) for axis in axes)
    return Tensor(name, dims, contiguous_strides(dims, sizes), "f32")


def kernel(
    name: str, sizes: Sizes, tensors: dict[str, Tensor], ops: tuple[Op, ...], loops: tuple[Loop, ...]
) -> BlockGraph:
    """With the tensors, and the axes, that the operators use: inputs first."""
    loaded = {op.tensor for op in ops if op.kind is Kind.LOAD}
    stored = {op.tensor for op in ops if op.kind is Kind.STORE}
    used = [t for names in (loaded, stored) for t in tensors.values() if t.name in names]
    axes = {axis for tensor in used for axis in (*tensor.axes, *tensor.measures)}
    return BlockGraph(name, {a: n for a, n in sizes.items() if a in axes}, tuple(used), ops, loops)

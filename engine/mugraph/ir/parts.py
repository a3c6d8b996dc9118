"""An axis in parts of which the last may be shorter (search/schedules/splits.py cuts it in two): one whose size varies,
with parts whose length a launch chooses, or one of a fixed size that has few divisors.

The block graph has the axis r as two, `r_split` (which part) and `r_part` (the place in it), as that of any split. What
is written of it has r itself: a thread block walks the elements from `r_split` times the length of a part up to the
next one, and the last part ends where r does. So parts are as long as the launch wants them, at every size of r.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, Sizes
from mugraph.ir.transforms.resizing import resize, resize_block


@dataclass(frozen=True)
class Parts:
    """axis: of the program. split, part: the two that a block graph has in its place"""

    axis: str
    split: str
    part: str


def parts_names(axis: str) -> tuple[str, str]:
    """What the two axes are called that an axis becomes: which part, and the place in it."""
    return f"{axis}_split", f"{axis}_part"


def with_part(schedule: Schedule, sizes: Sizes, split: str, part: str) -> Schedule | None:
    """A schedule with the length of a part, of whole tiles and about as long as in `sizes`; None where a block has
    several parts, or does not walk its own."""
    tile = schedule.loops.get(part, 0)
    if not tile or dict(schedule.grid).get(split, 1) != 1:
        return None
    return replace(schedule, part=-(-sizes[part] // tile) * tile)


def with_parts_at(schedule: Schedule, block: BlockGraph) -> Schedule:
    """The schedule of a kernel that stores parts, with parts as long as the block graph's sizes say now."""
    if not schedule.part:
        return schedule
    stored = {tensor.axes[0] for tensor in block.outputs if tensor.axes}  # what is handed over has `split` first
    pairs = (pair for tensor in block.inputs for dim in tensor.dims for pair in pairwise(dim))
    own = (pair for pair in pairs if pair[0] in stored and pair[1] in schedule.loops)
    return next((one for pair in own if (one := with_part(schedule, block.sizes, *pair)) is not None), schedule)


def parts_of(block: BlockGraph, program: TensorProgram, varying: Collection[str] | None = None) -> Parts | None:
    """The axis whose size varies that the block graph has in parts; None without one. varying: where the program, at
    one size of a range, does not say it"""
    known = {tensor.name: tensor for tensor in (*program.tensors, *program.outputs.values())}
    found = {
        parts
        for tensor in block.tensors
        if tensor.name in known
        for parts in _different(known[tensor.name].dims, tensor.dims)
        if parts.axis in (program.least if varying is None else varying)
    }
    return found.pop() if len(found) == 1 else None


def _different(whole: Dims, cut: Dims) -> Iterator[Parts]:
    for dim, own in zip(whole, cut, strict=False):
        for at, axis in enumerate(dim):
            if len(own) == len(dim) + 1 and (*dim[:at], *own[at : at + 2], *dim[at + 1 :]) == own and axis not in own:
                yield Parts(axis, own[at], own[at + 1])


def ragged_parts(program: TensorProgram, block: BlockGraph, schedule: Schedule) -> Parts | None:
    """The axis of a fixed size that a kernel takes in parts of which the last is shorter; None without one."""
    if not schedule.part:
        return None
    parts = parts_of(block, program, program.sizes.keys() - program.least.keys())
    if parts is None or parts.part not in block.loop_axes:
        return None
    count, length, size = block.sizes[parts.split], schedule.part, program.sizes[parts.axis]
    fits = length == block.sizes[parts.part] and (count - 1) * length < size < count * length
    return parts if fits else None


def in_whole_parts(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]]
) -> tuple[TensorProgram, Sequence[tuple[BlockGraph, Schedule]]]:
    """The program with axes that are so much longer that the last parts of them are as long as the others: of this size
    a block graph says what it computes. What is left out of the last part, the kernel's text says."""
    found = (ragged_parts(program, block, schedule) for block, schedule in kernels)
    longer = {one.axis: block.sizes[one.split] * block.sizes[one.part]
              for one, (block, _) in zip(found, kernels, strict=True) if one is not None}  # fmt: skip
    if not longer:
        return program, kernels
    whole = resize(program, {**program.sizes, **longer})
    before = {tensor.name: tensor.strides for tensor in program.tensors}

    def resized(block: BlockGraph) -> BlockGraph:
        right = {tensor.name for tensor in block.tensors if before.get(tensor.name) == tensor.strides}
        return lying_as(whole, with_sizes(block, longer), right)

    return whole, [(resized(block), schedule) for block, schedule in kernels]


def with_sizes(block: BlockGraph, sizes: Sizes) -> BlockGraph:
    """The block graph with other sizes of those of these axes that it has."""
    return resize_block(block, {axis: sizes.get(axis, size) for axis, size in block.sizes.items()})


def lying_as(program: TensorProgram, block: BlockGraph, names: Collection[str]) -> BlockGraph:
    """The block graph, with these tensors of the program where they lie in the program's memory."""
    own = {tensor.name: tensor.strides for tensor in program.tensors if tensor.name in names}
    tensors = (replace(one, strides=own.get(one.name, one.strides)) for one in block.tensors)
    return replace(block, tensors=tuple(tensors))


def undivided(
    block: BlockGraph, schedule: Schedule, parts: Parts, given: int | None = None
) -> tuple[BlockGraph, Schedule]:
    """With the axis in place of its parts. Of the values, those that are other ones in each part keep `split`.

    given: the size of the axis, where its last part is shorter
    """

    def joined(axes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(parts.axis if a == parts.part else a for a in axes if a != parts.split or parts.part not in axes)

    def loops(own: tuple[Loop, ...]) -> tuple[Loop, ...]:
        return tuple(Loop(parts.axis if one.axis == parts.part else one.axis, loops(one.body)) for one in own)

    sizes: dict[str, int] = {}
    for axis, size in block.sizes.items():
        whole = size * block.sizes[parts.split] if given is None else given
        sizes |= {parts.axis: whole} if axis == parts.part else {axis: size}
    tensors = tuple(replace(one, dims=tuple(map(joined, one.dims))) for one in block.tensors)
    axes = {one.name: one.axes for one in tensors}
    ops = tuple(
        replace(
            op,
            axes=tuple(sorted(axes[op.tensor])) if op.kind is Kind.LOAD else _renamed(op.axes, parts),
            over=_renamed(op.over, parts),
            rows=joined(op.rows),
            columns=joined(op.columns),
        )
        for op in block.ops
    )
    walked = {parts.axis if axis == parts.part else axis: tile for axis, tile in schedule.loops.items()}
    return BlockGraph(block.name, sizes, tensors, ops, loops(block.loops)), replace(schedule, loops=walked)


def _renamed(axes: tuple[str, ...], parts: Parts) -> tuple[str, ...]:
    return tuple(sorted(parts.axis if axis == parts.part else axis for axis in axes))


def sizes_in_parts(block: BlockGraph, parts: Parts | None, sizes: Mapping[str, int]) -> dict[str, int]:
    """The block graph's sizes, with those of `sizes`: an axis in parts falls into as many equal ones as it can, and no
    more than the block graph has."""
    found = {axis: sizes.get(axis, size) for axis, size in block.sizes.items()}
    if parts is not None and parts.axis in sizes:
        size, most = sizes[parts.axis], block.sizes[parts.split]
        count = next(count for count in range(min(most, size), 0, -1) if size % count == 0)
        found |= {parts.split: count, parts.part: size // count}
    return found

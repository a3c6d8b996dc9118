"""Reductions split across the grid: a topology cut at the accumulators of one of its loops.

The iterations of a loop meet only in its accumulators, which add, or keep the largest: so any number of thread blocks
may each run a part of them, if what they find is joined later. The looped axis r becomes two, `r_split` (which part)
and `r_part` (the place in it); the first kernel is everything up to the accumulators, which it stores with `r_split` as
one more axis; the second reduces them over `r_split` and goes on where the topology did after its loop. Split-K and
split-KV (FlashDecoding) with their combining kernels follow (Mirage v1, Figures 4b, 4c and 10b), and so does every
other split of whatever the search finds: nothing here knows which program it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.parts import parts_names
from mugraph.ir.placement import varying
from mugraph.kinds import accumulator, kind_named
from mugraph.search.schedules.added_first import added_first
from mugraph.search.schedules.cutting import above, in_parts, in_parts_of, kernel, order_in_memory, unfinished

PART_TILES = (256, 128, 64)
"""Elements of a part that is a tile of a product's side."""
LONG = 1 << 12
"""Elements of an axis that is worth any number of parts."""
COMBINE = "combine"
"""What is added to the name of a kernel for the one that finishes it."""


@dataclass(frozen=True)
class Cut:
    """Where a topology can be cut in two, for any number of parts.

    block:   the topology
    axis:    of the loop that is split
    split, part: the axes it becomes
    first:   operators of the first kernel with a loop over `part`, and without one
    second:  operators of the second kernel
    parts:   tensor that is handed over -> its axes in memory order, `split` first
    """

    block: BlockGraph
    axis: str
    split: str
    part: str
    first: tuple[tuple[Op, ...], tuple[Op, ...]]
    second: tuple[Op, ...]
    parts: tuple[tuple[str, tuple[str, ...]], ...]

    def at(self, count: int, *, looped: bool = True) -> tuple[BlockGraph, BlockGraph]:
        """Both kernels for `count` parts, which divide the axis.

        looped: the first kernel walks its part in a loop; otherwise a thread block holds all of its part at once
        """
        size = self.block.sizes[self.axis]
        if count < 1 or size % count:
            raise ValueError(f"{count} parts do not divide axis {self.axis} of size {size}")
        return self.of(count, size // count, looped=looped)

    def of(self, count: int, length: int, *, looped: bool = True) -> tuple[BlockGraph, BlockGraph]:
        """Both kernels for `count` parts, of which the last may be shorter than the others (ir/parts.py)."""
        sizes = {**self.block.sizes, self.split: count, self.part: length}
        del sizes[self.axis]
        handed = tuple(unfinished(name, axes, sizes) for name, axes in self.parts)
        known = {tensor.name: in_parts(tensor, self.axis, self.split, self.part) for tensor in self.block.tensors}
        ops = self.first[0] if looped else self.first[1]
        first = kernel(self.block.name, sizes, {**known, **{t.name: t for t in handed}}, ops, self._loops(ops))
        loops = _kept(self.block.loops, self.second)
        name = f"{self.block.name}_{COMBINE}"
        return first, kernel(name, sizes, {**{t.name: t for t in handed}, **known}, self.second, loops)

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        """The kernels at so many parts, with and without a loop over a part."""
        looped, second = self.at(count)
        return [(looped, second), (self.at(count, looped=False)[0], second)]

    def counts(self, most: int) -> list[int]:
        """Numbers of parts worth a look: as many as give a device blocks enough; where there are no products a part
        needs little, and there are up to `most`. Where the axis is a side of a product that is computed in the loop, as
        the classes of a cross-entropy are, parts may be as long as a product's tile too: then a block computes one
        tile of the product, however many there are, and walks its depth alone."""
        size = self.block.sizes[self.axis]
        products = [op for op in self.block.ops if op.kind.contracts]
        if not products:
            return part_counts(size, most) or odd_counts(size)
        counts = part_counts(size) or odd_counts(size)
        if any(self.axis in op.axes for op in products):
            counts += [size // tile for tile in PART_TILES if size % tile == 0]
        return sorted(set(counts))

    def _loops(self, ops: Iterable[Op]) -> tuple[Loop, ...]:
        def renamed(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
            return tuple(Loop(self.part if loop.axis == self.axis else loop.axis, renamed(loop.body)) for loop in loops)

        return _kept(renamed(self.block.loops), ops)


def cuts(block: BlockGraph) -> list[Cut]:
    """One for each loop that can be split: its accumulators stand in no other loop, no value of the loop uses one of
    them (that would be a second pass), and nothing after the loop has its axis."""
    return [cut for axis in block.loop_axes if (cut := _cut(block, axis)) is not None]


def part_counts(size: int, most: int = 64, least: int = 16) -> list[int]:
    """Powers of two of parts that an axis of this size falls into evenly, each of them `least` elements or more."""
    counts = (1 << n for n in range(1, most.bit_length()))
    return [count for count in counts if size % count == 0 and size // count >= least]


def odd_counts(size: int) -> list[int]:
    """Numbers of parts of a long axis that no power of two divides, as 29 of 50,257."""
    return [count for count in range(2, 64 + 1) if size % count == 0] if size >= LONG else []


def _cut(block: BlockGraph, axis: str) -> Cut | None:
    if any(axis in tensor.uncut for tensor in block.tensors):
        return None
    block = added_first(block, axis)
    vary = varying(block)
    closing = [op for op in block.ops if op.kind is Kind.ACCUM and op.over == (axis,)]
    if not closing or any(vary[op.name] or axis in op.axes for op in closing):
        return None
    closed = {op.name for op in closing}
    early, late = _stored(block, closed, axis)
    inside = above(block, closed | early)
    after = above(block, late, stop=closed)
    again = any(closed.intersection(op.inputs) for op in inside)
    runs = any(op.kind.scans and axis in op.over for op in inside)  # each part would begin with what another ended with
    if again or runs or any(axis in (*op.axes, *op.over) for op in after if op.name not in closed):
        return None
    split, part = parts_names(axis)
    if {split, part} & block.sizes.keys():  # it was split before
        return None
    taken = {*(tensor.name for tensor in block.tensors), *(op.name for op in block.ops)}
    names = {op.name: take(numbered(f"{op.name}_parts"), taken) for op in closing}
    parts = tuple((names[op.name], (split, *order_in_memory(op.axes, block))) for op in closing)
    looped = tuple(_first(inside, vary, axis, split, part))
    flat = tuple(_without_loop(looped, part))
    stored = {names[op.name]: op for op in closing}
    first = (
        (*looped, *_stores(stored, split, {op.name: op.name for op in closing}, taken)),
        (*flat, *_stores(stored, split, _sources(looped, part), taken)),
    )
    return Cut(block, axis, split, part, first, tuple(_second(after, names, split, closed)), parts)


def _stored(block: BlockGraph, closed: set[str], axis: str) -> tuple[set[str], set[str]]:
    """What the first kernel stores, tile by tile: outputs along the axis that come from no accumulator of the loop, as
    a cache that an attention reads and its new rows. And what the second one stores."""
    below = set(closed)
    for op in block.ops:
        if below.intersection(op.inputs):
            below.add(op.name)
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    early = {op.name for op in stores if op.name not in below and axis in op.axes}
    return early, {op.name for op in stores} - early


def _first(inside: list[Op], vary: dict[str, frozenset[str]], axis: str, split: str, part: str) -> Iterator[Op]:
    """Up to the accumulators: what varies in the loop varies with the part as well."""
    for op in inside:
        varies = axis in vary[op.name] or axis in op.axes or op.over == (axis,)
        yield in_parts_of(op, axis, split, part, varies=varies)


def _without_loop(ops: tuple[Op, ...], part: str) -> Iterator[Op]:
    """The same where a thread block holds all of its part: an accumulator of one iteration is what it adds up."""
    sources = _sources(ops, part)
    for op in ops:
        if op.name not in sources:
            yield replace(op, inputs=tuple(sources.get(name, name) for name in op.inputs))


def _sources(ops: tuple[Op, ...], part: str) -> dict[str, str]:
    return {op.name: op.inputs[0] for op in ops if op.kind is Kind.ACCUM and op.over == (part,)}


def _stores(stored: dict[str, Op], split: str, values: dict[str, str], taken: set[str]) -> Iterator[Op]:
    """values: accumulator -> the value that is stored for it."""
    names = set(taken)
    for tensor, op in stored.items():
        axes = tuple(sorted((*op.axes, split)))
        yield Op(take(numbered(f"store_{tensor}"), names), Kind.STORE, (values[op.name],), axes, tensor=tensor)


def _second(after: list[Op], names: dict[str, str], split: str, closed: set[str]) -> Iterator[Op]:
    """From the accumulators on: each is loaded and summed over the parts."""
    for op in after:
        if op.name in closed:
            load = names[op.name]
            yield Op(load, Kind.LOAD, (), tuple(sorted((*op.axes, split))), tensor=load)
            kind = kind_named(accumulator(op.fn).kind)
            yield Op(op.name, kind, (load,), op.axes, (split,), f32=op.f32)
        else:
            yield op


def _kept(loops: tuple[Loop, ...], ops: Iterable[Op]) -> tuple[Loop, ...]:
    """The loops that one of these operators closes; what stood in another one moves up."""
    closed = {axis for op in ops if op.kind is Kind.ACCUM for axis in op.over}

    def walk(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        kept: list[Loop] = []
        for loop in loops:
            body = walk(loop.body)
            kept += [Loop(loop.axis, body)] if loop.axis in closed else body
        return tuple(kept)

    return walk(loops)

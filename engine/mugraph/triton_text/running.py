"""A launch: a kernel, its arguments and its blocks.

It is surveyed once for all blocks: addresses and masks alone, which says what each block reads and writes. Then blocks
are run over the fields as their results are asked for, and with them the blocks whose results they read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.arrivals import Arrivals
from mugraph.triton_text.inputs import Inputs
from mugraph.triton_text.ints import REACH, Bools, Ints, around, extent, of_blocks
from mugraph.triton_text.memory import UNWRITTEN, WITH_Q, WITHOUT_Q, Layer, Memory, coded
from mugraph.triton_text.owners import Twice, runs_of
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.refusals import Diverges, TooMuch, Unreadable, Wrong
from mugraph.triton_text.source import Function
from mugraph.triton_text.waits import Start

Flat = NDArray[np.int64]

_SURVEYED = 4096
"""Blocks that are surveyed side by side."""
_TOGETHER = 1 << 18
"""Elements of the largest tile of the blocks that are run side by side."""
_MATERIAL = 1 << 21
"""Elements of addresses that are written down at once."""
_READ = 1 << 24
"""Elements that are looked up in what is not written whole, at most, for one launch."""

_CALL = 1 << 13
"""Elements that could be read in the time of a read of few."""


class Step(Protocol):
    """What writes to memory: a launch, or a call of a library."""

    number: int

    def run(self, blocks: NDArray[np.int64]) -> None:
        """Compute what these blocks write."""
        ...


@dataclass
class World:
    """One draw of the fields, and the steps of a launcher in order."""

    reals: Reals
    inputs: Inputs
    steps: list[Step] = field(default_factory=list[Step])
    elements: int = 0
    """That were computed, about."""
    most: float = inf
    """Elements read, above which it is too much. A read counts as `_CALL` at least: calls of numpy take time, too."""
    takes_tf32: bool = False
    """Numbers may be rounded to tf32."""
    asks_empty: bool = True
    """An attention is 0 in rows that its mask hides; else that is not asked, as where the program has no number there
    or puts one there itself."""
    asked_empty: bool = False
    """It was."""
    whole: set[Memory] = field(default_factory=set[Memory])
    """Memory of whole numbers that floating-point numbers are stored to."""
    _work: int = 0

    def begin(self) -> None:
        """Nothing has been read."""
        self.elements = self._work = 0

    def read(
        self, memory: Memory, at: Flat, step: int, blocks: NDArray[np.int64] | None = None, *, last: bool = False
    ) -> Real:
        """What the elements hold before a step. blocks: of the step, that read; they also see what they wrote. last:
        and what others of their groups did, which were run before.

        Raises TooMuch."""
        self._work += max(at.size, _CALL)
        if self._work > self.most:
            raise TooMuch("a block of it is computed from too many elements")
        if memory.source is not None and not memory.layers:
            p, q = self.inputs.at(at + memory.source)
            return Real(p, q)
        codes = np.zeros(at.shape, np.uint8)
        p, q = np.zeros(at.shape, np.int64), np.zeros(at.shape, np.int64)
        left = np.arange(at.size)
        for layer in reversed(memory.layers):
            if layer.step > step or (layer.step == step and blocks is None) or not left.size:
                continue
            if layer.adds:
                self._add(memory, layer, at, left, codes, p, q)
                continue
            owner = layer.owners.of(at[left])
            if layer.step == step:
                assert blocks is not None
                seen = owner > 0 if last else owner == blocks[left] + 1
                found = seen & (layer.codes[at[left]] != UNWRITTEN)
            else:
                found = owner > 0
                missing = found & (layer.codes[at[left]] == UNWRITTEN)
                if missing.any():
                    self.steps[layer.step].run(np.unique(owner[missing]) - 1)
            here, places = left[found], at[left[found]]
            codes[here], p[here], q[here] = layer.codes[places], layer.p[places], layer.q[places]
            left = left[~found]
        if left.size:
            self._first(memory, at, left, codes, p, q)
        if any(layer.adds and layer.step < step for layer in memory.layers):
            return self._with_sums(memory, at, step, coded(codes, p, q if self.reals.field.with_q else None))
        return coded(codes, p, q if self.reals.field.with_q else None)

    def _add(
        self, memory: Memory, layer: Layer, at: Flat, left: Flat, codes: NDArray[np.uint8], p: Flat, q: Flat
    ) -> None:
        """Run all blocks that add to the elements; the sums are added when what was there before is known."""
        blocks = layer.owners.adding_to(at[left])
        if blocks.size:
            self.steps[layer.step].run(blocks)

    def _with_sums(self, memory: Memory, at: Flat, step: int, value: Real) -> Real:
        """Layers that add, above what was there before. A later layer that writes would have hidden both."""
        for layer in memory.layers:
            if layer.adds and layer.step < step:
                found = layer.owners.added_to(at)
                if any(other.step > layer.step and not other.adds and other.step < step for other in memory.layers):
                    raise Unreadable(f"{memory.name} is written again after blocks have added to it")
                without = bool((layer.codes[at[found]] == WITHOUT_Q).any())
                q = None if without else np.where(found, layer.q[at], 0)
                value = self.reals.add(value, Real(np.where(found, layer.p[at], 0), q))
        return value

    def _first(self, memory: Memory, at: Flat, left: Flat, codes: NDArray[np.uint8], p: Flat, q: Flat) -> None:
        """What memory begins with."""
        if memory.source is not None:
            first, second = self.inputs.at(at[left] + memory.source)
            codes[left], p[left] = WITHOUT_Q if second is None else WITH_Q, first
            if second is not None:
                q[left] = second
        elif memory.fill is not None:
            value = self.reals.constant(memory.fill, 0)
            codes[left] = WITH_Q if value.state is None else value.state + 2
            p[left] = value.p
            if value.q is not None:
                q[left] = value.q
        else:
            raise Wrong("unwritten", f"{memory.element(int(at[left[0]]))} is read and was never written")


@dataclass(eq=False)
class Launch:
    """arguments: of the kernel, by name. evaluate: runs it in some blocks, without numbers where it is surveyed.
    largest: elements of the largest tile"""

    world: World
    number: int
    function: Function
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]
    line: int
    evaluate: Callable[[Launch, NDArray[np.int64], Reals | None], None]
    largest: int = 1
    read: int = 0
    written: set[Memory] = field(default_factory=set[Memory])
    also_read: set[Memory] = field(default_factory=set[Memory])
    added: set[Memory] = field(default_factory=set[Memory])
    """What its blocks add to."""
    start: Start = field(default_factory=Start)
    arrivals: Arrivals = field(default_factory=Arrivals)
    """Of its blocks, where the last ones of groups go on."""
    again: bool = False
    """The survey runs a second time, now that it is known what the launch writes."""
    _done: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    def survey(self, in_one: Callable[[Launch], bool] = lambda _: False) -> None:
        """in_one: looks at all blocks together, and says whether that was enough (boxes.py). Raises Wrong and
        Unreadable."""
        self._done = np.zeros(self.blocks, np.bool_)
        self.arrivals.begin(self.blocks)
        if in_one(self):
            return
        for self.again in (False, True):
            if self.again and not self.written & self.also_read:
                break
            self._look()
            if self.arrivals.any and self.arrivals.last is None:  # now it is known who the last ones may be
                self.arrivals.know()
                self._look()

    def _look(self) -> None:
        self._apart(np.arange(self.blocks), None, _SURVEYED)
        for memory in self.written - self.added:
            twice = memory.layer(self.number, self.line).owners.settle()
            if twice is not None:
                self._refuse(memory, twice)

    def begin(self) -> None:
        """Nothing has been run."""
        self._done[:] = False

    @property
    def count(self) -> int:
        """Blocks that were run."""
        return int(self._done.sum())

    def run(self, blocks: NDArray[np.int64]) -> None:
        if self.arrivals.any:
            blocks = self.arrivals.with_members(blocks)
        wanted = blocks[~self._done[blocks]]
        self._done[wanted] = True
        most, last = max(1, _TOGETHER // self.largest), self.arrivals.are_last(wanted)
        self._apart(wanted[~last], self.world.reals, most)
        self._apart(wanted[last], self.world.reals, most)

    def _apart(self, blocks: NDArray[np.int64], reals: Reals | None, most: int) -> None:
        """In groups that go the same way."""
        groups = [blocks[at : at + most] for at in range(0, len(blocks), most)][::-1]
        while groups:
            group = groups.pop()
            try:
                self.evaluate(self, group, reals)
            except Diverges as split:
                ways = np.broadcast_to(split.ways, group.shape)
                groups += [group[ways == way] for way in np.unique(ways)[::-1]]

    # --- what a run reads and writes

    def named(self, block: int) -> str:
        x, y, _ = self.grid
        return f"block ({block % x}, {block // x % y}, {block // (x * y)}) of {self.function.name}"

    def where(self, block: int, memory: Memory, at: int) -> dict[str, object]:
        x, y, _ = self.grid
        tile = [block % x, block // x % y, block // (x * y)]
        index: object = memory.index(at) if 0 <= at < memory.size else at
        return {"kernel": self.function.name, "tile": tile, "tensor": memory.name, "element": index}

    def check_bounds(
        self, memory: Memory, offsets: Ints, mask: Bools | None, blocks: NDArray[np.int64], what: str
    ) -> None:
        self.largest = max(self.largest, prod(offsets.shape))
        low, high = around(offsets)
        doubtful = np.flatnonzero((low < 0) | (high >= min(memory.size, REACH if offsets.kind == "int32" else inf)))
        if not doubtful.size:
            return
        if len(low) > 1:
            blocks = blocks[doubtful]
            offsets = replace(offsets, parts=tuple(of_blocks(part, doubtful) for part in offsets.parts))
            if mask is not None:
                mask = replace(mask, parts=tuple(of_blocks(part, doubtful) for part in mask.parts))
        low, high, some = extent(offsets, mask)
        bad = some & ((low < 0) | (high >= memory.size))
        if bad.any():
            at = int(bad.argmax())
            place = int(low[at]) if low[at] < 0 else int(high[at])
            block = int(blocks[at] if len(bad) > 1 else blocks[0])
            reason = f"{self.named(block)} {what} {memory.element(place)}"
            raise Wrong("bounds", reason, where=self.where(block, memory, place))
        if offsets.kind == "int32" and some.any() and int(high.max(initial=0, where=some)) >= REACH:
            raise Wrong("bounds", f"an address in {memory.name} does not fit into 32 bits")

    def each_place(
        self, offsets: Ints, mask: Bools | None, blocks: NDArray[np.int64]
    ) -> list[tuple[Flat, NDArray[np.int64]]]:
        """Every address, and the block that it is of; by parts, so that they fit into memory."""
        found: list[tuple[Flat, NDArray[np.int64]]] = []
        lanes = prod(offsets.shape)
        step = max(1, _MATERIAL // max(lanes, 1))
        for start in range(0, len(blocks), step):
            own = blocks[start : start + step]

            def cut(array: NDArray[Any], start: int = start) -> NDArray[Any]:
                return array[start : start + step] if array.shape[0] > 1 else array

            shape = (len(own), *offsets.shape)
            places = cut(offsets.parts[0])
            for part in offsets.parts[1:]:
                places = places + cut(part)
            places = np.broadcast_to(places, shape)
            ids = np.broadcast_to(own.reshape(-1, *(1,) * len(offsets.shape)), shape)
            if mask is not None:
                where = cut(mask.parts[0])
                for part in mask.parts[1:]:
                    where = where & cut(part)
                where = np.broadcast_to(where, shape)
                found.append((places[where], ids[where]))
            else:
                found.append((places.reshape(-1), ids.reshape(-1)))
        return found

    def check_read(
        self, memory: Memory, offsets: Ints, mask: Bools | None, blocks: NDArray[np.int64], *, own: bool,
        last: bool = False,
    ) -> None:  # fmt: skip
        """Is what is read inside of the tensor, written before, and not written by this launch? own: the run has
        written to the memory before; last: each block is the last one of its group"""
        self.also_read.add(memory)
        races = self.again and memory in self.written
        if memory.is_dense and memory.is_written(self.number) and not races and not own:
            return
        self.read += prod(offsets.shape) * len(blocks)
        if self.read > _READ:
            if memory.is_dense or races or own:
                raise Unreadable(f"too much is read of {memory.name} to look up who wrote it")
            return
        layer = memory.of_step(self.number)
        if memory in self.added:
            raise Wrong("order", f"{self.function.name} reads {memory.name} and adds to it, in no order")
        for places, ids in self.each_place(offsets, mask, blocks):
            check_inside(memory, places)
            if layer is not None:
                owner = layer.owners.of(places)
                foreign = (owner > 0) & (owner != ids + 1)
                if last:
                    foreign &= ~self.arrivals.are_together(ids, np.maximum(owner - 1, 0))
                if foreign.any():
                    at = int(foreign.argmax())
                    other = self.named(int(owner[at]) - 1)
                    raise Wrong(
                        "order",
                        f"{self.named(int(ids[at]))} reads {memory.element(int(places[at]))}, which {other} writes",
                    )
                # The first time only what was written before is known, the second time all that the launch writes.
                mine = (owner == ids + 1) & (own and not self.again)
                if mine.any():
                    at = int(mine.argmax())
                    raise Wrong(
                        "order",
                        f"{self.named(int(ids[at]))} reads {memory.element(int(places[at]))}, which other "
                        "threads of it wrote, without a barrier between",
                    )
            if memory.source is None and memory.fill is None:
                written = np.zeros(places.shape, np.bool_)
                for one in memory.layers:
                    written |= (one.owners.of(places) > 0) & (one.step <= self.number)
                if not written.all():
                    at = int((~written).argmax())
                    raise Wrong(
                        "unwritten",
                        f"{self.named(int(ids[at]))} reads {memory.element(int(places[at]))}, which was never written",
                    )

    def mark_added(
        self, memory: Memory, offsets: Ints, mask: Bools | None, blocks: NDArray[np.int64], line: int
    ) -> None:
        """Say who adds: in any order, so nothing else may be done with these elements in this launch."""
        if memory in self.written - self.added:
            raise Wrong("order", f"{self.function.name} writes to {memory.name} and adds to it, in no order", line)
        self.written.add(memory)
        self.added.add(memory)
        layer = memory.layer(self.number, line)
        layer.adds = True
        layer.owners.add_to(runs_of(offsets, mask, blocks))

    def mark(self, memory: Memory, offsets: Ints, mask: Bools | None, blocks: NDArray[np.int64], line: int) -> None:
        """Say who writes."""
        if memory in self.added:
            raise Wrong("order", f"{self.function.name} writes to {memory.name} and adds to it, in no order", line)
        self.written.add(memory)
        if not memory.is_dense:
            for places, _ in self.each_place(offsets, mask, blocks):
                check_inside(memory, places)
        twice = memory.layer(self.number, line).owners.add(runs_of(offsets, mask, blocks))
        if twice is not None:
            self._refuse(memory, twice)

    def _refuse(self, memory: Memory, twice: Twice) -> None:
        one, other = self.named(twice.one), self.named(twice.other)
        by = f"{one} and {other}" if twice.one != twice.other else f"two lanes of {one}"
        raise Wrong("order", f"{memory.element(twice.place)} is written by {by}", self.line)


def check_inside(memory: Memory, places: Flat) -> None:
    """Is each an element of the tensor, and not between two of them?"""
    if memory.is_dense or not places.size:
        return
    left = places
    good = np.ones(places.shape, np.bool_)
    for stride, size in sorted(zip(memory.strides, memory.shape, strict=True), reverse=True):
        if stride > 0 and size > 1:
            good &= left // stride < size
            left = left % stride
    good &= left == 0
    if not good.all():
        raise Wrong(
            "bounds", f"element {int(places[(~good).argmax()])} of the memory of {memory.name} is none of its own"
        )


def block_ids(blocks: NDArray[np.int64], grid: Sequence[int], axis: int) -> NDArray[np.int64]:
    x, y, _ = grid
    return (blocks % x, blocks // x % y, blocks // (x * y))[axis]

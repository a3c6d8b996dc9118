"""Execution of a block graph under a schedule: every block of the grid, every iteration of the loops, tile by tile.

Tiles are really cut out of the inputs (imap, fmap) and really put together into the outputs (omap). The last tile along
an axis whose size is no multiple of the tile is cut short, which is what correct masking amounts to: lanes beyond the
tensor contribute nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.kinds import accumulator, kind_named
from mugraph.verification.arithmetic import Arithmetic, Index, OfRank
from mugraph.verification.evaluate import Frame, Malformed, apply, load, of_places, result_axes

V = TypeVar("V")

ELEMENTS = 1 << 18
"""Of the largest value, in all tiles that are computed together: they lie in a processor's cache."""


@dataclass(frozen=True, slots=True)
class Run:
    """Tiles of one length that follow one another. first: number of the first"""

    first: int
    count: int
    length: int


Coordinates = Mapping[str, Run]
"""Grid or loop axis -> tiles."""


def execute_block(
    block: BlockGraph, schedule: Schedule, inputs: Mapping[str, V], arithmetic: Arithmetic[V]
) -> dict[str, V]:
    """Output tensor name -> [repetitions, *tensor.shape].

    inputs: tensor name -> [repetitions, *tensor.shape]
    Raises Malformed where the graph has no meaning, where a block would need what another block computes, and where an
    element of an output is not written exactly once.
    """
    return _Execution(block, schedule, inputs, arithmetic).run()


def execute_kernels(
    kernels: Sequence[tuple[BlockGraph, Schedule]], inputs: Mapping[str, V], arithmetic: Arithmetic[V]
) -> dict[str, V]:
    """Tensor name -> value, for the inputs and for what each kernel stores, one kernel after the other.
    Raises Malformed."""
    memory = dict(inputs)
    for block, schedule in kernels:
        results = execute_block(block, schedule, memory, arithmetic)
        again = sorted(results.keys() & memory.keys())
        if again:
            raise Malformed(f"{block.name} writes {', '.join(again)}, which exists already")
        memory.update(results)
    return memory


class Structure:
    """What can be said of a block graph under a schedule before any number is computed; raises Malformed.

    tiles:  grid or loop axis -> elements in a tile
    varies: value -> grid and loop axes whose tiles it differs between (an ACCUM removes its loop)
    lanes:  value -> loop axes it still has after their loop: its elements are partial sums, one per place in the tile
    axes:   value -> its axes
    """

    def __init__(self, block: BlockGraph, schedule: Schedule) -> None:
        self.block = block
        grid = dict(schedule.grid)
        looped = set(block.loop_axes)
        if len(grid) != len(schedule.grid) or set(grid) & looped:
            raise Malformed("an axis of the grid is named twice or is looped as well")
        if set(schedule.loops) != looped:
            raise Malformed(f"the schedule loops over {sorted(schedule.loops)}, the graph over {sorted(looped)}")
        self.tiles: dict[str, int] = {}
        for axis, tile in (*schedule.grid, *schedule.loops.items()):
            if axis not in block.sizes or tile < 1:
                raise Malformed(f"{axis} is no axis of the graph or its tile {tile} is empty")
            self.tiles[axis] = min(tile, block.sizes[axis])
        self.paths = _paths(block.loops)
        self.varies: dict[str, frozenset[str]] = {}
        self.lanes: dict[str, frozenset[str]] = {}
        self.axes: dict[str, frozenset[str]] = {}
        self.ops: dict[str, Op] = {}
        self._tensors = {tensor.name: tensor for tensor in block.inputs}
        for op in block.ops:
            self._add(op)

    def _add(self, op: Op) -> None:
        if op.name in self.ops:
            raise Malformed(f"two values are called {op.name}")
        for name in op.inputs:
            if name not in self.ops or self.ops[name].kind is Kind.STORE:
                raise Malformed(f"{op.name} uses {name} before it is defined")
        axes = result_axes(op, [self.axes[name] for name in op.inputs], self._tensors)
        varies = frozenset[str]().union(*(self.varies[name] for name in op.inputs))
        lanes = frozenset[str]().union(*(self.lanes[name] for name in op.inputs))
        for name in op.inputs:
            mixed = (lanes - self.lanes[name]) & self.axes[name]
            if mixed:
                raise Malformed(f"{op.name} mixes partial sums over {sorted(mixed)} with elements of it")
        match op.kind:
            case kind if kind is Kind.LOAD or kind.of_places:
                varies = axes & self.tiles.keys()
            case Kind.ACCUM:
                if len(op.over) != 1 or op.over[0] not in self.block.loop_axes:
                    raise Malformed(f"{op.name} accumulates over {', '.join(op.over)}, which is not looped")
                self._check_nest(op, varies | set(op.over))
                lanes = lanes | (axes & set(op.over))
                varies = varies.difference(op.over)
            case Kind.STORE:
                self._check_store(op, axes, lanes)
            case _ if op.kind.reduces:
                lanes = lanes.difference(op.over)
            case _ if op.kind.scans:
                self._check_running(op, varies, lanes)
            case _:
                pass
        self._check_nest(op, varies)
        self.ops[op.name] = op
        self.axes[op.name], self.varies[op.name], self.lanes[op.name] = axes, varies, lanes

    def _check_nest(self, op: Op, varies: frozenset[str]) -> None:
        loops = varies & set(self.block.loop_axes)
        if loops and not any(loops <= path for path in self.paths):
            raise Malformed(f"{op.name} varies along {sorted(loops)}, which are not loops of one nest")

    def _check_running(self, op: Op, varies: frozenset[str], lanes: frozenset[str]) -> None:
        (axis,) = op.over
        if axis in lanes:
            raise Malformed(f"{op.name} runs along partial sums over {axis}")
        if axis in varies and axis not in self.block.loop_axes:
            raise Malformed(f"{op.name} runs along {axis}, of which each block has a part")

    def _check_store(self, op: Op, axes: frozenset[str], lanes: frozenset[str]) -> None:
        tensor = self.block.tensor(op.tensor)
        if axes != frozenset(tensor.axes):
            raise Malformed(f"{op.name} stores axes {sorted(axes)} to {tensor.name} with {sorted(tensor.axes)}")
        if lanes:
            raise Malformed(f"{op.name} stores partial sums over {sorted(lanes)}")


def _paths(loops: Sequence[Loop], above: frozenset[str] = frozenset()) -> list[frozenset[str]]:
    """The axes of each way from the root of the tiling expression to a leaf."""
    paths: list[frozenset[str]] = []
    for loop in loops:
        here = above | {loop.axis}
        paths.extend(_paths(loop.body, here) if loop.body else [here])
    return paths


class _Execution(Generic[V]):
    """One run. Tiles of one size are computed together, as many as fit in ELEMENTS: each tiled axis has a second
    position in a value's layout, over its tiles. A value has size 1 there for what it does not vary with."""

    def __init__(
        self, block: BlockGraph, schedule: Schedule, inputs: Mapping[str, V], arithmetic: Arithmetic[V]
    ) -> None:
        self._structure = Structure(block, schedule)
        tiled = sorted(self._structure.tiles)
        self._frame = Frame((*map(_over_tiles, tiled), *sorted(block.sizes)), block.sizes)
        self._arithmetic = arithmetic
        self._inputs: dict[str, V] = {}
        for tensor in block.inputs:
            if tensor.name not in inputs:
                raise Malformed(f"the graph reads {tensor.name}, which is no input")
            self._inputs[tensor.name] = load(tensor, inputs[tensor.name], self._frame, arithmetic)
        repetitions = max((arithmetic.shape(value)[0] for value in self._inputs.values()), default=1)
        self._runs = self._together(ELEMENTS // repetitions)
        self._memo: dict[tuple[str, tuple[Run, ...]], V] = {}

    def _together(self, elements: int) -> dict[str, tuple[Run, ...]]:
        """Of each tiled axis, the tiles that are computed together: a last tile cut short stays alone."""
        tiles, sizes = self._structure.tiles, self._structure.block.sizes
        largest = max(
            (prod(tiles.get(axis, sizes[axis]) for axis in axes) for axes in self._structure.axes.values()), default=1
        )
        most, runs = max(1, elements // max(1, largest)), dict[str, tuple[Run, ...]]()
        for axis, tile in tiles.items():
            whole, rest = divmod(sizes[axis], tile)
            count = max(1, min(most, whole))
            most //= count
            runs[axis] = tuple(Run(at, min(count, whole - at), tile) for at in range(0, whole, count))
            if rest:
                runs[axis] += (Run(whole, 1, rest),)
        return runs

    def run(self) -> dict[str, V]:
        stores = [op for op in self._structure.ops.values() if op.kind is Kind.STORE]
        if len({op.tensor for op in stores}) != len(stores):
            raise Malformed("an output is stored by two operators")
        return {op.tensor: self._store(op) for op in stores}

    def _store(self, op: Op) -> V:
        """All tiles of one output, put together. Blocks that differ only in axes the value does not vary with hold the
        same tile; the first of them stores it."""
        tensor = self._structure.block.tensor(op.tensor)
        varies = sorted(self._structure.varies[op.name])
        axes = tensor.axes
        written = np.zeros([self._frame.sizes[a] if a in axes else 1 for a in self._frame.order], np.int64)
        pieces: list[tuple[Index, V]] = []
        for runs in product(*(self._runs[axis] for axis in varies)):
            tiles = self._value(op.inputs[0], dict(zip(varies, runs, strict=True)))
            for place in product(*(range(run.count) for run in runs)):
                within = dict(zip(varies, place, strict=True))
                index = self._slices(axes, dict(zip(varies, runs, strict=True)), within)
                written[index[1:]] += 1
                pieces.append((index, self._tile(tiles, within)))
        if not (written == 1).all():
            most = int(written.max())
            raise Malformed(f"an element of {tensor.name} is written {most if most != 1 else 0} times")
        repetitions = self._arithmetic.shape(pieces[0][1])[0]
        whole = self._arithmetic.assemble((repetitions, *written.shape), pieces)
        return self._arithmetic.rearrange(whole, lambda array: self._frame.to_tensor(array, tensor))

    def _value(self, name: str, coordinates: Coordinates) -> V:
        """The tiles of a value at these coordinates, which have at least the axes that the value varies with. Uses a
        list of pending tiles, not recursion: a graph may be a chain of thousands of operators."""
        waiting: list[tuple[str, Coordinates]] = [(name, coordinates)]
        while waiting:
            value, place = waiting[-1]
            key = self._key(value, place)
            if key not in self._memo:
                op = self._structure.ops[value]
                needed = self._needed(op, place)
                missing = [one for one in needed if self._key(*one) not in self._memo]
                if missing:
                    waiting += missing
                    continue
                self._memo[key] = self._computed(op, place, [self._memo[self._key(*one)] for one in needed])
            waiting.pop()
        return self._memo[self._key(name, coordinates)]

    def _key(self, name: str, coordinates: Coordinates) -> tuple[str, tuple[Run, ...]]:
        return name, tuple(coordinates[axis] for axis in sorted(self._structure.varies[name]))

    def _needed(self, op: Op, coordinates: Coordinates) -> list[tuple[str, Coordinates]]:
        """Tiles that this tile of the operator's value is made of."""
        if op.kind.scans and (before := self._before(op, coordinates)) is not None:
            return [(op.inputs[0], coordinates), (op.name, before)]
        if op.kind is not Kind.ACCUM:
            return [(operand, coordinates) for operand in op.inputs]
        axis = op.over[0]
        return [(op.inputs[0], {**coordinates, axis: run}) for run in self._runs[axis]]

    def _computed(self, op: Op, coordinates: Coordinates, operands: Sequence[V]) -> V:
        match op.kind:
            case Kind.LOAD:
                axes = self._structure.block.tensor(op.tensor).axes
                return self._arithmetic.rearrange(
                    self._inputs[op.tensor], lambda array: self._cut(array, axes, coordinates)
                )
            case kind if kind.of_places:
                return of_places(op, self._frame, self._arithmetic, lambda a: self._cut(a, op.axes, coordinates))
            case Kind.ACCUM:
                return self._accumulated(op, operands)
            case kind if kind.scans and op.over[0] in self._structure.varies[op.name]:
                return self._run_on(op, operands)
            case _:
                return apply(op, operands, self._frame, self._arithmetic)

    def _cut(self, array: NDArray[Any], axes: Collection[str], coordinates: Coordinates) -> NDArray[Any]:
        """The tiles at these coordinates, each axis's one after the other along its position over tiles."""
        array = array[self._slices(axes, coordinates)]
        for axis, run in coordinates.items():
            if axis in axes and run.count > 1:
                at, over = self._frame.positions([axis])[0], self._frame.positions([_over_tiles(axis)])[0]
                split = array.reshape(*array.shape[:at], run.count, run.length, *array.shape[at + 1 :])
                array = np.moveaxis(split, at, over).squeeze(over + 1)
        return array

    def _accumulated(self, op: Op, parts: Sequence[V]) -> V:
        """Of all iterations, in their order. parts: of each run of them"""
        axis = op.over[0]
        source = op.inputs[0]
        position = self._frame.positions(op.over)[0]
        # A last tile cut short is filled up only where its places are kept for a reduction after the loop: with zeros,
        # or where equal elements count once (a maximum) with the tile's last element.
        fill = axis in self._structure.axes[source] and axis not in self._structure.lanes[source]
        found = accumulator(op.fn)
        again = not kind_named(found.kind).repeats
        join, numbers = kind_named(found.joins).meaning, OfRank(self._arithmetic, self._frame.rank)
        total: V | None = None
        for run, turns in zip(self._runs[axis], parts, strict=True):
            for turn in range(run.count):
                part = self._tile(turns, {axis: turn})
                if fill:
                    part = self._arithmetic.rearrange(
                        part, lambda array: _fill(array, position, self._structure.tiles[axis], again=again)
                    )
                total = part if total is None else join(numbers, (total, part), "", ())
        assert total is not None
        return total

    def _before(self, op: Op, coordinates: Coordinates) -> Coordinates | None:
        """Of a running sum along a looped axis, the tiles that its loop runs before these; None before the first."""
        (axis,) = op.over
        if axis not in self._structure.varies[op.name]:
            return None
        runs = self._runs[axis]
        at = runs.index(coordinates[axis]) + (1 if op.kind.backwards else -1)
        return {**coordinates, axis: runs[at]} if 0 <= at < len(runs) else None

    def _run_on(self, op: Op, operands: Sequence[V]) -> V:
        """A running sum through the iterations of a loop: each begins with what the one before it ended with.
        operands: the tiles, and those of the result before them, if any"""
        (axis,) = op.over
        along, over = self._frame.positions([axis])[0], self._frame.positions([_over_tiles(axis)])[0]
        on, backwards = self._arithmetic, op.kind.backwards

        def end(array: NDArray[Any], at_the_first: bool, position: int) -> NDArray[Any]:
            return array.take([0 if at_the_first else -1], position)

        carried: V | None = None
        if len(operands) > 1:
            last = on.rearrange(operands[1], lambda array: end(array, backwards, over))
            carried = on.rearrange(last, lambda array: end(array, backwards, along))
        count = on.shape(operands[0])[over]
        done: list[tuple[int, V]] = []
        for turn in range(count)[::-1] if backwards else range(count):
            found = apply(op, [self._tile(operands[0], {axis: turn})], self._frame, on)
            found = found if carried is None else on.add(found, carried)
            carried = on.rearrange(found, lambda array: end(array, backwards, along))
            done.append((turn, found))
        shape = list(on.shape(done[0][1]))
        shape[over] = count
        pieces: list[tuple[Index, V]] = []
        for turn, found in done:
            index = [slice(None)] * len(shape)
            index[over] = slice(turn, turn + 1)
            pieces.append((tuple(index), found))
        return on.assemble(tuple(shape), pieces)

    def _tile(self, tiles: V, within: Mapping[str, int]) -> V:
        """Of tiles that lie together, the one at these numbers; of an axis that they do not vary with, the only one."""
        at = [(self._frame.positions([_over_tiles(axis)])[0], number) for axis, number in within.items()]

        def cut(array: NDArray[Any]) -> NDArray[Any]:
            index = [slice(None)] * array.ndim
            for position, number in at:
                if array.shape[position] > 1:
                    index[position] = slice(number, number + 1)
            return array[tuple(index)]

        return self._arithmetic.rearrange(tiles, cut)

    def _slices(
        self, axes: Collection[str], coordinates: Coordinates, within: Mapping[str, int] | None = None
    ) -> Index:
        """The elements of all tiles at these coordinates; within: of one of them"""
        index = [slice(None)]
        for axis in self._frame.order:
            run = coordinates.get(axis) if axis in axes else None
            if run is None:
                index.append(slice(None))
                continue
            first, count = (run.first, run.count) if within is None else (run.first + within[axis], 1)
            start = first * self._structure.tiles[axis]
            index.append(slice(start, start + count * run.length))
        return tuple(index)


def _over_tiles(axis: str) -> str:
    """Name of the position over an axis's tiles."""
    return f"tiles of {axis}"


def _fill(array: NDArray[Any], position: int, length: int, *, again: bool) -> NDArray[Any]:
    """again: with the last element, instead of zeros"""
    if array.shape[position] == length:
        return array
    widths = [(0, 0)] * array.ndim
    widths[position] = (0, length - array.shape[position])
    return np.pad(array, widths, mode="edge") if again else np.pad(array, widths)

"""Execution of a block graph under a schedule: every block of the grid, every iteration of the loops, tile by tile.

Tiles are really cut out of the inputs (imap, fmap) and really put together into the outputs (omap). The last tile along
an axis whose size is no multiple of the tile is cut short, which is what correct masking amounts to: lanes beyond the
tensor contribute nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from math import ceil
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.kinds import accumulator, kind_named
from mugraph.verification.arithmetic import Arithmetic, Index, OfRank
from mugraph.verification.evaluate import Frame, Malformed, apply, load, result_axes, triangle

V = TypeVar("V")

Coordinates = Mapping[str, int]
"""Grid or loop axis -> number of the tile."""


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
    counts: grid or loop axis -> number of tiles
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
        self.counts: dict[str, int] = {}
        for axis, tile in (*schedule.grid, *schedule.loops.items()):
            if axis not in block.sizes or tile < 1:
                raise Malformed(f"{axis} is no axis of the graph or its tile {tile} is empty")
            self.tiles[axis] = min(tile, block.sizes[axis])
            self.counts[axis] = ceil(block.sizes[axis] / tile)
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
            case Kind.LOAD | Kind.MASK:
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
            case _:
                pass
        self._check_nest(op, varies)
        self.ops[op.name] = op
        self.axes[op.name], self.varies[op.name], self.lanes[op.name] = axes, varies, lanes

    def _check_nest(self, op: Op, varies: frozenset[str]) -> None:
        loops = varies & set(self.block.loop_axes)
        if loops and not any(loops <= path for path in self.paths):
            raise Malformed(f"{op.name} varies along {sorted(loops)}, which are not loops of one nest")

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
    """One run. A tile's value is computed once for all blocks and iterations that agree in what it varies with."""

    def __init__(
        self, block: BlockGraph, schedule: Schedule, inputs: Mapping[str, V], arithmetic: Arithmetic[V]
    ) -> None:
        self._structure = Structure(block, schedule)
        self._frame = Frame.of(block.sizes)
        self._arithmetic = arithmetic
        self._inputs: dict[str, V] = {}
        for tensor in block.inputs:
            if tensor.name not in inputs:
                raise Malformed(f"the graph reads {tensor.name}, which is no input")
            self._inputs[tensor.name] = load(tensor, inputs[tensor.name], self._frame, arithmetic)
        self._memo: dict[tuple[str, tuple[int, ...]], V] = {}

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
        counts = [self._structure.counts[axis] for axis in varies]
        written = np.zeros([self._frame.sizes[a] if a in tensor.axes else 1 for a in self._frame.order], np.int64)
        pieces: list[tuple[Index, V]] = []
        for place in product(*(range(count) for count in counts)):
            coordinates = dict(zip(varies, place, strict=True))
            index = self._slices(tensor.axes, coordinates)
            written[index[1:]] += 1
            pieces.append((index, self._value(op.inputs[0], coordinates)))
        if not (written == 1).all():
            most = int(written.max())
            raise Malformed(f"an element of {tensor.name} is written {most if most != 1 else 0} times")
        repetitions = self._arithmetic.shape(pieces[0][1])[0]
        whole = self._arithmetic.assemble((repetitions, *written.shape), pieces)
        return self._arithmetic.rearrange(whole, lambda array: self._frame.to_tensor(array, tensor))

    def _value(self, name: str, coordinates: Coordinates) -> V:
        """The tile of a value at these coordinates, which have at least the axes that the value varies with. Uses a
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

    def _key(self, name: str, coordinates: Coordinates) -> tuple[str, tuple[int, ...]]:
        return name, tuple(coordinates[axis] for axis in sorted(self._structure.varies[name]))

    def _needed(self, op: Op, coordinates: Coordinates) -> list[tuple[str, Coordinates]]:
        """Tiles that this tile of the operator's value is made of."""
        if op.kind is not Kind.ACCUM:
            return [(operand, coordinates) for operand in op.inputs]
        axis = op.over[0]
        return [(op.inputs[0], {**coordinates, axis: turn}) for turn in range(self._structure.counts[axis])]

    def _computed(self, op: Op, coordinates: Coordinates, operands: Sequence[V]) -> V:
        match op.kind:
            case Kind.LOAD:
                index = self._slices(self._structure.block.tensor(op.tensor).axes, coordinates)
                return self._arithmetic.rearrange(self._inputs[op.tensor], lambda array: array[index])
            case Kind.MASK:
                where = triangle(op, self._frame)[self._slices(op.axes, coordinates)]
                return self._arithmetic.indicator(where)
            case Kind.ACCUM:
                return self._accumulated(op, operands)
            case _:
                return apply(op, operands, self._frame, self._arithmetic)

    def _accumulated(self, op: Op, parts: Sequence[V]) -> V:
        """parts: of each iteration"""
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
        for part in parts:
            if fill:
                part = self._arithmetic.rearrange(
                    part, lambda array: _fill(array, position, self._structure.tiles[axis], again=again)
                )
            total = part if total is None else join(numbers, (total, part), "", ())
        assert total is not None
        return total

    def _slices(self, axes: Collection[str], coordinates: Coordinates) -> Index:
        index = [slice(None)]
        for axis in self._frame.order:
            if axis in axes and axis in self._structure.tiles and axis in coordinates:
                start = coordinates[axis] * self._structure.tiles[axis]
                index.append(slice(start, start + self._structure.tiles[axis]))
            else:
                index.append(slice(None))
        return tuple(index)


def _fill(array: NDArray[Any], position: int, length: int, *, again: bool) -> NDArray[Any]:
    """again: with the last element, instead of zeros"""
    if array.shape[position] == length:
        return array
    widths = [(0, 0)] * array.ndim
    widths[position] = (0, length - array.shape[position])
    return np.pad(array, widths, mode="edge") if again else np.pad(array, widths)

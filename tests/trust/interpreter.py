"""Runs one block graph under its schedule, on memory: every block, every iteration, every tile.

It knows the JSON and nothing of the engine. A tile's value is computed once for all blocks and iterations that agree in
what it depends on; the last tile of an axis is cut short. Loads gather from flat buffers by the strides, windows and
axes that the graph declares, stores scatter into them, and both are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from tests.trust.meaning import OPERANDS, POINTWISE, REDUCTIONS, number, pointwise, reduced, triangle
from tests.trust.memory import Buffer, Floats, Json, Places, Wrong, places_of

Where = dict[str, int]
"""Grid or loop axis -> number of the tile."""


def run_block(block: Json, schedule: Json, memory: Mapping[str, Buffer], sizes: Mapping[str, int]) -> None:
    """Reads and writes `memory` (tensor name -> buffer). sizes: of axes, in place of the block's own. Raises Wrong."""
    with np.errstate(all="ignore"):
        _Run(block, schedule, memory, sizes).run()


class _Run:
    def __init__(self, block: Json, schedule: Json, memory: Mapping[str, Buffer], sizes: Mapping[str, int]) -> None:
        self.sizes = {axis: sizes.get(axis, size) for axis, size in block["sizes"].items()}
        if any(not isinstance(size, int) or size < 1 for size in self.sizes.values()):
            raise Wrong("an axis has no elements")
        self.order = sorted(self.sizes)
        self.memory = memory
        self.tensors = {tensor["name"]: tensor for tensor in block["tensors"]}
        if len(self.tensors) != len(block["tensors"]):
            raise Wrong("two tensors have one name")
        self.paths = list(_paths(block["loops"]))
        self.loops = {axis for path in self.paths for axis in path}
        self.tiles = self._tiles(block, schedule)
        self.ops: dict[str, Json] = {}
        self.axes: dict[str, frozenset[str]] = {}
        self.varies: dict[str, frozenset[str]] = {}
        self.lanes: dict[str, frozenset[str]] = {}
        for op in block["ops"]:
            self._declare(op)
        self.loaded: dict[str, Floats] = {}
        self.masks: dict[str, Floats] = {}
        self.known: dict[tuple[str, tuple[int, ...]], Floats] = {}

    def run(self) -> None:
        stores = [op for op in self.ops.values() if op["kind"] == "store"]
        if not stores:
            raise Wrong("nothing is stored")
        read = {op["tensor"] for op in self.ops.values() if op["kind"] == "load"}
        for op in stores:
            if op["tensor"] in read:
                raise Wrong(f"{op['tensor']} is read and written by one kernel")
            self._store(op)

    # What can be said before any number is computed.

    def _tiles(self, block: Json, schedule: Json) -> dict[str, int]:
        """Grid or loop axis -> elements of a tile."""
        if schedule.get("library"):
            raise Wrong("a generated kernel is scheduled as a library's")
        warps, stages = schedule.get("num_warps", 4), schedule.get("num_stages", 3)
        if warps not in (1, 2, 4, 8, 16, 32) or stages < 1:
            raise Wrong(f"{warps} warps and {stages} stages cannot be launched")
        every = [axis for path in _listed(block["loops"]) for axis in path]
        grid = [axis for axis, _ in schedule["grid"]]
        loops = schedule.get("loops", {})
        if len(set(every)) != len(every) or len(set(grid)) != len(grid) or set(grid) & set(every):
            raise Wrong("an axis is named twice, or is a loop and on the grid")
        if set(loops) != set(every):
            raise Wrong("loops without tiles, or tiles without loops")
        tiles = dict((*schedule["grid"], *loops.items()))
        for axis, tile in tiles.items():
            if axis not in self.sizes or not isinstance(tile, int) or tile < 1:
                raise Wrong(f"{axis} is no axis, or has a tile of {tile}")
        return {axis: min(tile, self.sizes[axis]) for axis, tile in tiles.items()}

    def _declare(self, op: Json) -> None:
        name, kind = op["name"], op["kind"]
        if name in self.ops:
            raise Wrong(f"two values are called {name}")
        if len(op["inputs"]) != OPERANDS.get(kind, -1):
            raise Wrong(f"{name}: {kind} of {len(op['inputs'])} values")
        for other in op["inputs"]:
            if other not in self.ops or self.ops[other]["kind"] == "store":
                raise Wrong(f"{name} uses {other}, which is not there yet")
        if not {*op["over"], *op["rows"], *op["columns"]} <= set(self.order):
            raise Wrong(f"{name} names an axis that has no size")
        of = [self.axes[other] for other in op["inputs"]]
        axes = frozenset[str]().union(*of)
        varies = frozenset[str]().union(*(self.varies[other] for other in op["inputs"]))
        lanes = frozenset[str]().union(*(self.lanes[other] for other in op["inputs"]))
        for other in op["inputs"]:
            if (lanes - self.lanes[other]) & self.axes[other]:
                raise Wrong(f"{name} mixes partial sums with elements")
        over = frozenset(op["over"])
        if kind in ("load", "store") and op["tensor"] not in self.tensors:
            raise Wrong(f"{name}: there is no tensor {op['tensor']}")
        if kind in REDUCTIONS:
            if not over or not over <= axes:
                raise Wrong(f"{name} reduces what is not there")
            axes, lanes = axes - over, lanes - over
        elif kind == "load":
            axes = frozenset(axis for dim in self.tensors[op["tensor"]]["dims"] for axis in dim)
            varies = axes & self.tiles.keys()
        elif kind == "mask":
            axes = frozenset((*op["rows"], *op["columns"]))
            if len(axes) != len(op["rows"]) + len(op["columns"]) or not op["rows"] or not op["columns"]:
                raise Wrong(f"{name} is no mask")
            varies = axes & self.tiles.keys()
        elif kind == "accum":
            if len(over) != 1 or not over <= self.loops or op["fn"] not in ("", "max"):
                raise Wrong(f"{name} accumulates over what is no loop, or in no known way")
            self._on_one_path(name, varies | over)
            lanes = lanes | (axes & over)
            varies = varies - over
        elif kind == "store" and lanes:
            raise Wrong(f"{name} stores partial sums")
        self._on_one_path(name, varies)
        if list(op["axes"]) != sorted(axes):
            raise Wrong(f"{name} is said to have other axes than it has")
        self.ops[name] = op
        self.axes[name], self.varies[name], self.lanes[name] = axes, varies, lanes

    def _on_one_path(self, name: str, varies: frozenset[str]) -> None:
        inside = varies & self.loops
        if inside and not any(inside <= set(path) for path in self.paths):
            raise Wrong(f"{name} varies in loops that are not inside one another")

    # Numbers.

    def _store(self, op: Json) -> None:
        tensor = self.tensors[op["tensor"]]
        if tensor.get("windows"):
            raise Wrong(f"{op['name']} writes through a window")
        if self.axes[op["name"]] != {axis for dim in tensor["dims"] for axis in dim}:
            raise Wrong(f"{op['name']} stores other axes than {tensor['name']} has")
        places = places_of(tensor, self.order, self.sizes)
        varies = sorted(self.varies[op["name"]])
        if tensor["name"] not in self.memory:
            raise Wrong(f"there is no memory for {tensor['name']}")
        for coordinates in product(*(range(-(-self.sizes[axis] // self.tiles[axis])) for axis in varies)):
            where = dict(zip(varies, coordinates, strict=True))
            tile = places[self._slices(where, op["name"])]
            value = self._value(op["inputs"][0], where)
            self.memory[tensor["name"]].write(tile, np.broadcast_to(value, (len(value), *tile.shape)), op["name"])

    def _value(self, name: str, where: Where) -> Floats:
        key = (name, tuple(where[axis] for axis in sorted(self.varies[name])))
        if key not in self.known:
            self.known[key] = self._computed(self.ops[name], where)
        return self.known[key]

    def _computed(self, op: Json, where: Where) -> Floats:
        name, kind = op["name"], op["kind"]
        if kind == "load":
            if name not in self.loaded:
                self.loaded[name] = self._gathered(self.tensors[op["tensor"]], name)
            return self.loaded[name][:, *self._slices(where, name)]
        if kind == "mask":
            if name not in self.masks:
                self.masks[name] = triangle(op, self.order, self.sizes)
            return self.masks[name][:, *self._slices(where, name)]
        if kind == "const":
            return np.full([1] * (1 + len(self.order)), number(op["value"]))
        if kind == "accum":
            return self._accumulated(op, where)
        operands = [self._value(other, where) for other in op["inputs"]]
        return pointwise(op, operands) if kind in POINTWISE else reduced(op, operands, self.order)

    def _gathered(self, tensor: Json, who: str) -> Floats:
        if tensor["name"] not in self.memory:
            raise Wrong(f"{who} reads {tensor['name']}, which is not there")
        places: Places = places_of(tensor, self.order, self.sizes)
        return self.memory[tensor["name"]].read(places, who)

    def _accumulated(self, op: Json, where: Where) -> Floats:
        (axis,) = op["over"]
        at = 1 + self.order.index(axis)
        total: Floats | None = None
        for iteration in range(-(-self.sizes[axis] // self.tiles[axis])):
            part = self._value(op["inputs"][0], {**where, axis: iteration})
            if total is None:
                total = np.array(part)
                continue
            # The last tile has fewer lanes: the others keep what they have.
            index: list[Any] = [slice(None)] * part.ndim
            index[at] = slice(0, part.shape[at])
            kept = total[tuple(index)]
            joined = np.maximum(kept, part) if op["fn"] == "max" else kept + part
            if joined.shape == kept.shape:
                total[tuple(index)] = joined
            else:
                total = joined
        assert total is not None
        return total

    def _slices(self, where: Where, name: str) -> tuple[slice, ...]:
        """Of the axes of a load, mask or store: its tile."""
        return tuple(
            slice(where[axis] * self.tiles[axis], (where[axis] + 1) * self.tiles[axis])
            if axis in self.axes[name] and axis in self.tiles
            else slice(None)
            for axis in self.order
        )


def _listed(loops: list[Json], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """For each loop, its own axis alone, depth first."""
    for loop in loops:
        yield (loop["axis"],)
        yield from _listed(loop.get("body", []))


def _paths(loops: list[Json], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Axes from the root of the nest to each leaf."""
    for loop in loops:
        here = (*above, loop["axis"])
        if loop.get("body"):
            yield from _paths(loop["body"], here)
        else:
            yield here

"""What a topology looks like once its axes have tiles: the roles of its axes, and how often each statement runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, prod

from mugraph.ir.block import PRECISIONS, TF32, BlockGraph, Loop, Precision, Schedule
from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.halves import STEP, is_half
from mugraph.ir.kept import factors, kept_by
from mugraph.ir.ops import Kind, Op
from mugraph.ir.packing import Packs, held, pack_violations, packs
from mugraph.search.schedules.accesses import Access, is_loaded_elsewhere, is_scattered
from mugraph.search.schedules.ends import ends
from mugraph.search.schedules.products import feeding, is_chained, product_of
from mugraph.search.schedules.row_sums import row_sums
from mugraph.search.schedules.sectors import innermost
from mugraph.search.schedules.summed import summed

MIN_DOT = 16
"""The least side of a tensor-core product; smaller tiles are padded and masked."""


@cache
def next_power(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


@dataclass(frozen=True, slots=True)
class Computed:
    """An operator whose elements threads compute. source: of whose elements there is work. instructions: on each"""

    op: Op
    source: Op
    instructions: int
    reduces: bool
    has_exp: bool


class Tiles(dict[str, int]):
    """Axis -> lanes; and what follows from the tiles alone, counted once for all warps, stages and operand orders.

    plain: axis -> its tile, without what pads it
    packs: axes that are one dimension
    known: axes -> elements of a value's tile. moved: axes -> elements of it that are in memory
    trips: loops that a statement varies in -> how often it runs
    """

    def __init__(self, plain: Mapping[str, int]) -> None:
        super().__init__({axis: next_power(tile) for axis, tile in plain.items()})
        self.plain = plain
        self.packs: Packs = ()
        self.fit: bool | None = None
        """Can they be written at all? None: not looked at yet."""
        self.footprint: tuple[int, int, int] | None = None
        """As cost.footprint finds it. None: not looked at yet."""
        self.known: dict[tuple[str, ...], int] = {}
        self.moved: dict[tuple[str, ...], int] = {}
        self.trips: dict[frozenset[str], float] = {}


class Shape:
    """A topology's structure, computed once and read for each of its schedules."""

    def __init__(self, block: BlockGraph) -> None:
        self.block = block
        self.sizes = block.sizes
        self.ops = {op.name: op for op in block.ops}
        self.stores = [op for op in block.ops if op.kind is Kind.STORE]
        self.itemsize = {t.name: ITEMSIZE[t.dtype] for t in block.tensors}
        self.ancestors = dict(_ancestors(block.loops, ()))
        self.varies = self._varies()
        self.ends = ends(block)
        self.products = [product_of(block, self.ops, op) for op in block.ops if op.kind.contracts]
        self.row_sums = tuple(row_sums(block))
        self.is_exact = any(p.is_exact and p.is_matrix for p in self.products)
        """Does it have products of float32, to which tensor cores are a choice?"""
        self.takes_tf32 = any(p.takes_tf32 and p.is_exact and p.is_matrix for p in self.products)
        self.is_stream = not any(op.kind.reduces or op.kind.scans for op in block.ops)
        """Element by element, one pass over memory?"""
        # Without rows or columns of its own a product is multiply and sum: its axes may have any tiles.
        matrices = [p for p in self.products if p.is_matrix]
        self.dot_axes = {axis for p in matrices for side in p.sides for axis in side}
        self.batch_axes = {axis for p in matrices for axis in p.batch}
        self.several = {axis for p in matrices for side in p.sides if len(side) > 1 for axis in side} - self.batch_axes
        """Axes that a side of a product has several of: those that may be packed (ir/packing.py)."""
        self._packs: dict[frozenset[str], Packs | None] = {}
        self._held: dict[tuple[tuple[str, ...], Packs], tuple[str, ...]] = {}
        self._tiles: dict[tuple[object, ...], Tiles] = {}
        self._last: tuple[object, object, Tiles] | None = None
        reduced = {axis for op in block.ops for axis in op.over}
        # An axis that is reduced and returned (a norm over the output's own rows) stays whole in a block.
        stored = dict.fromkeys(axis for store in self.stores for axis in store.axes)
        self.grid_axes = tuple(axis for axis in stored if axis not in reduced)
        self.loop_axes = block.loop_axes
        self.feeds_dot = feeding(self.ops, matrices)
        self.vectors = frozenset(p.op.name for p in self.products if not p.is_matrix)
        self.operands = frozenset(i for p in matrices for i in p.op.inputs)
        self.summed = frozenset(summed(block)) if matrices else frozenset[str]()
        self.added = frozenset(
            op.inputs[0]
            for op in block.ops
            if op.kind is Kind.ACCUM and any(p.op.name == op.inputs[0] and not p.is_exact for p in matrices)
        )
        """Products that the tensor cores add to their accumulators: they stand in no registers of their own."""
        self.chained = [p for p in self.products if is_chained(p, self.ops, self.varies)]
        """Products outside of every loop with an operand computed from another such product."""
        # Along a window, neighbours in memory are neighbouring lanes at some taps only: each element has an address.
        self.scattered = frozenset(
            op.name for op in block.ops if op.kind is Kind.LOAD and is_scattered(block.tensor(op.tensor), self.sizes)
        )
        # Loads that only products read go from shared memory to the tensor cores without passing through registers.
        onto_cores = {p.op.name for p in matrices}
        self.raw = frozenset(
            op.name
            for op in block.ops
            if op.kind is Kind.LOAD and all(user.name in onto_cores for user in block.ops if op.name in user.inputs)
        )
        kept = kept_by(self.ops, factors(self.ops))
        self._kept = {name: tuple(self.ops[mask] for mask in sorted(masks)) for name, masks in kept.items() if masks}
        self.accesses = [self._access(op) for op in block.ops if op.kind in (Kind.LOAD, Kind.STORE)]
        self.computed = [self._computed(op) for op in block.block_ops if not op.kind.contracts]
        runs = {one.innermost[:1] for one in self.accesses if one.innermost and len(one.op.axes) > 1}
        self.rows = {axis for one in self.accesses for axis in one.innermost[:1]}
        """Axes that a tensor lies along in memory, without gaps."""
        self.taps = frozenset[str]() if self.products else _taps(block)
        """Short axes of windows that are reduced. A block may take them one by one."""
        self.turns = self.is_stream and len(runs) > 1
        """Does it write along another axis than it reads along? Then a tile changes places in shared memory."""

    def _access(self, op: Op) -> Access:
        tensor = self.block.tensor(op.tensor)
        run, is_looped = innermost(tensor, self.sizes), bool(self.varies[op.name])
        scattered, is_store = op.name in self.scattered, op.kind is Kind.STORE
        again = not is_store and is_loaded_elsewhere(self.block, tensor)
        width, kept = self.itemsize[op.tensor], self._kept.get(op.name, ())
        return Access(op, is_store, width, self.whole(op), run, scattered, is_looped, again, kept)

    def _computed(self, op: Op) -> Computed:
        source = self.ops[op.inputs[0]] if op.kind.reduces else op
        # The tensor cores add a product to its accumulator.
        is_added = op.kind is Kind.ACCUM and self.ops[op.inputs[0]].kind.contracts
        instructions = 0 if is_added else op.kind.instructions
        exchanges = op.kind.reduces or op.kind.scans
        return Computed(op, source, instructions, exchanges, "exp" in op.kind.primitives)

    def tiles(self, schedule: Schedule) -> Tiles:
        """Lanes of each axis in a tile: padded to a power of two, and to 16 at the side of a product, where axes that
        are packed count together. Remembered: schedules that differ in nothing else are many."""
        grid, loops = schedule.grid, schedule.loops
        if self._last is not None and self._last[0] is grid and self._last[1] is loops:
            return self._last[2]
        key = (grid, tuple(loops.values()))
        known = self._tiles.get(key)
        if known is None:
            known = self._tiles[key] = self._padded(schedule)
        self._last = grid, loops, known
        return known

    def _padded(self, schedule: Schedule) -> Tiles:
        lanes = Tiles({**self.sizes, **schedule.loops, **dict(schedule.grid)})
        lanes.packs = self.packs(lanes) or ()
        alone = self.dot_axes - self.batch_axes
        for pack in lanes.packs:
            alone = alone.difference(pack)
            lanes[pack[0]] *= max(1, MIN_DOT // prod(lanes[axis] for axis in pack))
        for axis in alone:
            if 1 < lanes[axis] < MIN_DOT:
                lanes[axis] = MIN_DOT
        return lanes

    def packs(self, tiles: Mapping[str, int]) -> Packs | None:
        """Groups of axes that make up one dimension with these tiles. None where the axes of some side of a product
        cannot be one."""
        wide = frozenset(axis for axis in self.several if tiles[axis] > 1)
        if len(wide) < 2:
            return ()
        if wide not in self._packs:
            others = self.dot_axes - self.several - self.batch_axes
            wider = wide | {axis for axis in others if self.sizes[axis] > 1}
            broken = any(True for _ in pack_violations(self.block, wider))
            self._packs[wide] = None if broken else packs(self.block, wider)
        return self._packs[wide]

    def elements(self, tiles: Tiles, op: Op) -> int:
        """Of one tile of a value."""
        known = tiles.known.get(op.axes)
        if known is None:
            known = tiles.known[op.axes] = prod(map(tiles.__getitem__, self._holding(op.axes, tiles.packs)))
        return known

    def _holding(self, axes: tuple[str, ...], packed: Packs) -> tuple[str, ...]:
        if not packed:
            return axes
        if (axes, packed) not in self._held:
            self._held[axes, packed] = held(axes, packed)
        return self._held[axes, packed]

    def whole(self, op: Op) -> int:
        """Bytes of the tensor that is loaded or stored."""
        tensor = self.block.tensor(op.tensor)
        elements = prod(tensor.shape(self.sizes))
        return self.itemsize[op.tensor] * (elements // STEP if is_half(tensor) else elements)

    def moved(self, tiles: Tiles, op: Op) -> int:
        """Elements of a tile that is loaded or stored, without what pads it."""
        known = tiles.moved.get(op.axes)
        if known is None:
            plain, sizes = tiles.plain, self.sizes
            known = tiles.moved[op.axes] = prod([min(plain[axis], sizes[axis]) for axis in op.axes])
        return known

    def terms(self, tiles: Tiles, op: Op) -> int:
        """Elements held to compute a tile of a value: of a product without rows or columns, all that it sums."""
        return self.elements(tiles, op) * (prod(tiles[axis] for axis in op.over) if op.name in self.vectors else 1)

    def trips(self, schedule: Schedule, tiles: Tiles, op: Op) -> float:
        """How often a statement runs in a block: it sits in the outermost place that binds all it depends on."""
        varies = self.varies[op.name]
        known = tiles.trips.get(varies)
        if known is None:
            known = tiles.trips[varies] = self._trips(schedule, varies)
        return known

    def _trips(self, schedule: Schedule, varies: frozenset[str]) -> float:
        around: set[str] = set()
        for axis in varies:
            around |= {axis, *self.ancestors[axis]}
        every = prod(ceil(self.sizes[axis] / schedule.loops[axis]) for axis in around)
        return every * self.share(schedule, around) if self.ends else every

    def share(self, schedule: Schedule, loops: Iterable[str]) -> float:
        """Of the iterations of these loops, those that run: a loop over a mask's columns ends with the last column that
        a block's rows see. The mean over the blocks."""
        share = 1.0
        for axis in loops:
            if axis in self.ends:
                share *= self.ends[axis].shares(schedule, self.sizes)[0]
        return share

    def longest(self, schedule: Schedule) -> float:
        """How much longer than the mean the block runs that runs longest."""
        ratio = 1.0
        for end in self.ends.values():
            mean, longest = end.shares(schedule, self.sizes)
            ratio *= longest / mean
        return ratio

    def _varies(self) -> dict[str, frozenset[str]]:
        """Loops whose iterations a value differs in. An ACCUM runs inside its loop."""
        varies: dict[str, frozenset[str]] = {}
        loops = set(self.block.loop_axes)
        closed: dict[str, frozenset[str]] = {}
        for op in self.block.ops:
            here = {axis for i in op.inputs for axis in closed[i]}
            if op.kind is Kind.LOAD or op.kind.of_places:
                here = loops & set(op.axes)
            varies[op.name] = frozenset(here)
            closed[op.name] = frozenset(here - set(op.over)) if op.kind is Kind.ACCUM else frozenset(here)
        return varies

    def precisions(self, among: Sequence[Precision]) -> Sequence[Precision]:
        """Those that are a choice."""
        if not self.is_exact:
            return PRECISIONS[:1]
        return among if self.takes_tf32 else [one for one in among if one != TF32]


def _taps(block: BlockGraph) -> frozenset[str]:
    reduced = {axis for op in block.ops for axis in op.over if block.sizes[axis] <= MIN_DOT}
    loaded = (block.tensor(op.tensor) for op in block.ops if op.kind is Kind.LOAD)
    windows = ((tensor, window) for tensor in loaded for window in tensor.windows)
    return frozenset(axis for tensor, window in windows for axis in window.split(tensor.dims[window.dim])[1]) & reduced


def _ancestors(loops: tuple[Loop, ...], above: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Each loop with the loops around it."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for loop in loops:
        found.append((loop.axis, above))
        found += _ancestors(loop.body, (*above, loop.axis))
    return found

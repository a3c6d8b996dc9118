"""What one block of a scheduled topology does: loop iterations, bytes, products by their path, element-wise lanes.

Counts only, of structure and sizes; cost.py turns them into time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from mugraph.ir.block import TF32, Loop, Schedule
from mugraph.ir.kept import share
from mugraph.ir.ops import Kind
from mugraph.search.schedules.accesses import Access
from mugraph.search.schedules.in_parts import ROUNDING, flops_in_parts
from mugraph.search.schedules.products import Product
from mugraph.search.schedules.sectors import LINE, SECTOR, in_sectors, run_bytes
from mugraph.search.schedules.tiles import Computed, Shape, Tiles

WIDE_LEFT = 64
"""Rows of the left operand that the wide tensor-core path (wgmma) needs; fewer take the narrow one (mma)."""
_MMA = (16, 8)
"""Rows and columns of one narrow product instruction: warps beyond a tile's share of these compute the same again."""
HELD, SPILLS, SPILLED = 512, 3.5, 12
"""Elements of a product in float32 that a thread can hold in registers; with more it is slower, by this power of how
many more, and so much at most."""
PARTED = 0.6
"""Of the bytes that a transposing kernel writes in runs of a cache line each, those that memory could move meanwhile.
Measured on an H100 (float32, 64 and 128 channels, 1 GB): runs of 128 bytes take 1.30 times what a copy takes, of 256
bytes 1.15, of 512 bytes 1.03 to 1.06. How long the runs are that it reads matters little: 1.02 at 64 bytes."""
LONG_RUN = 512
"""Bytes; longer runs gain nothing."""
NEAR = 1 << 16
"""Bytes of a tensor that a processor's first-level cache keeps for one block after the other. (Copies into shared
memory, which products on tensor cores are fed by, go past it.) A row of 8 KB by 14,336 columns of int8, on an H200:
18.6 µs in blocks of one column, 18.2 of two, 18.4 of four."""
_ASYNC_BYTES = 4
"""The least a thread can copy asynchronously: thinner tiles are loaded with a wait in every iteration."""


@dataclass(slots=True)
class Work:
    """Of one block over its whole run, but for `unique`, `moved`, `drawn` and `lined`, which are the grid's.

    steps, fills:   iterations of innermost loops, and how often such a loop starts with an empty pipeline
    waits:          loads that cannot be asynchronous
    unique, moved:  bytes of all tensors once, and of all blocks' tiles together
    drawn:          bytes of all blocks' tiles, in whole sectors of memory
    lined:          likewise, in whole lines of the cache
    parted:         what memory could move meanwhile that takes short runs, where a tile changes places
    wide:           products on the wide path
    wide_flops, narrow_flops: of products, warps' repetitions counted
    shared_bytes:   products' operands read from shared memory, again by each warp that needs them
    passed_bytes:   computed operands passed from registers through shared memory
    exact_flops, exact_depth: of products in float32, which take no tensor cores; elements that are added one after
                    the other there
    peak_flops:     of products in parts of float32, as many as the processor's peak would do meanwhile
    reductions, exps: operators all warps must exchange values for
    lanes:          element-wise operations of one thread, one after the other
    """

    steps: float = 1
    fills: float = 1
    waits: float = 0
    unique: float = 0.0
    moved: float = 0.0
    drawn: float = 0.0
    lined: float = 0.0
    parted: float = 0.0
    wide: float = 0
    wide_flops: float = 0.0
    narrow_flops: float = 0.0
    shared_bytes: float = 0.0
    passed_bytes: float = 0.0
    exact_flops: float = 0.0
    exact_depth: float = 0.0
    peak_flops: float = 0.0
    reductions: float = 0
    exps: float = 0
    lanes: float = 0.0


def work(shape: Shape, schedule: Schedule, blocks: int) -> Work:
    """Count. blocks: of the grid."""
    found = Work()
    tiles = shape.tiles(schedule)
    found.steps, found.fills = iterations(shape, schedule)
    threads = 32 * schedule.num_warps
    for access in shape.accesses:
        _memory(found, shape, schedule, access, tiles, blocks, threads)
    for computed in shape.computed:
        _elementwise(found, shape, schedule, computed, tiles, threads)
    for product in shape.products:
        _product(found, shape, schedule, product, tiles)
    return found


def iterations(shape: Shape, schedule: Schedule) -> tuple[float, float]:
    """Of innermost loops, and how often such a loop starts."""

    def walk(loops: tuple[Loop, ...], around: float) -> tuple[float, float]:
        steps = fills = 0.0
        for loop in loops:
            trips = ceil(shape.sizes[loop.axis] / schedule.loops[loop.axis]) * shape.share(schedule, (loop.axis,))
            inner = walk(loop.body, around * trips) if loop.body else (around * trips, around)
            steps, fills = steps + inner[0], fills + inner[1]
        return steps, fills

    return walk(shape.block.loops, 1) if shape.block.loops else (1, 0)


def _memory(
    found: Work, shape: Shape, schedule: Schedule, access: Access, tiles: Tiles, blocks: int, threads: int
) -> None:
    traffic(found, shape, schedule, access, tiles, blocks)
    if access.is_looped and not access.is_store:
        at_once = access.width * (1 if access.is_scattered else shape.elements(tiles, access.op) / threads)
        if at_once < _ASYNC_BYTES:
            found.waits += shape.trips(schedule, tiles, access.op)


def traffic(found: Work, shape: Shape, schedule: Schedule, access: Access, tiles: Tiles, blocks: int) -> None:
    """Adds the bytes that the grid loads or stores: they follow from the tiles alone."""
    width, whole = access.width, access.whole
    found.unique += 0 if access.again else whole
    # Each element is stored once, also where several blocks have it.
    each = width * shape.moved(tiles, access.op) * shape.trips(schedule, tiles, access.op)
    is_near = whole <= NEAR and not shape.dot_axes
    single = [axis for axis, tile in schedule.grid if tile == 1]
    loading = blocks * share(access.kept, shape.sizes, single) if access.kept else blocks
    moved = whole if access.is_store or is_near else max(whole, each * loading)
    found.moved += moved
    found.drawn += moved * in_sectors(access.innermost, width, tiles.plain, shape.sizes)
    if shape.is_stream:
        found.lined += moved * in_sectors(access.innermost, width, tiles.plain, shape.sizes, LINE)
    if shape.turns and access.is_store and access.innermost:
        run = run_bytes(access.innermost, width, tiles.plain, shape.sizes)
        found.parted += PARTED * moved * LINE / min(max(SECTOR, run), LONG_RUN)


def _elementwise(found: Work, shape: Shape, schedule: Schedule, computed: Computed, tiles: Tiles, threads: int) -> None:
    trips = shape.trips(schedule, tiles, computed.op)
    found.lanes += computed.instructions * max(1.0, shape.elements(tiles, computed.source) / threads) * trips
    found.reductions += trips if computed.reduces else 0
    found.exps += trips if computed.has_exp else 0


def _product(found: Work, shape: Shape, schedule: Schedule, product: Product, tiles: Tiles) -> None:
    trips, warps = shape.trips(schedule, tiles, product.op), schedule.num_warps
    rows, columns, depth = (prod(tiles[axis] for axis in side) for side in product.sides)
    left, right = not product.left_is_load, not product.right_is_load
    if schedule.swap:
        rows, columns, left, right = columns, rows, right, left
    if min(rows, columns) == 1:  # matrix-vector: multiply and sum
        batch = prod(tiles[axis] for axis in product.batch)
        found.lanes += 2 * batch * rows * columns * depth * trips / (32 * warps)
        return
    flops = 2.0 * rows * columns * depth * trips
    wide = rows >= WIDE_LEFT and warps >= 4
    precision = product.precision(schedule)
    if product.is_exact and precision == "ieee":
        _exact_product(found, rows * columns / (32 * warps), depth, trips, flops)
        return
    if product.is_exact:
        found.wide += trips if wide else 0
        found.peak_flops += flops_in_parts(product, schedule, rows, columns, flops, wide=wide)
        if precision == TF32:
            found.lanes += ROUNDING * (rows + columns) * depth * trips / (32 * warps)
        return
    if wide:
        groups = warps // 4
        down = min(groups, rows // WIDE_LEFT)
        across = min(groups // down, max(1, columns // 16))
        again = groups / (down * across)
        found.wide += trips
        found.wide_flops += flops * again
        # A left operand computed from a product stays in registers; one computed from a load is read from shared
        # memory, and changes places between threads before the cores take it.
        of_load = left and _is_of_load(shape, product.op.inputs[schedule.swap])
        passes = 3 if of_load else 0 if left else 1
        read = passes * rows * across
        found.shared_bytes += 2 * depth * (read + columns * down) * again * trips
    else:
        across = min(warps, max(1, columns // _MMA[1]))
        down = min(warps // across, max(1, rows // _MMA[0]))
        again = warps / (across * down)
        found.narrow_flops += flops * again
        found.shared_bytes += 2 * depth * (rows * across + columns * down) * again * trips
        # Warps lie across the columns, and each needs all of a computed left operand.
        found.passed_bytes += 2 * rows * depth * across * trips if left else 0
    found.passed_bytes += 2 * columns * depth * trips if right else 0


def _exact_product(found: Work, outputs: float, depth: int, trips: float, flops: float) -> None:
    """outputs: of one thread, which holds a row's and a column's elements of each"""
    held = 2 * max(1.0, outputs) ** 0.5 * depth
    slower = min(SPILLED, max(1.0, held / HELD) ** SPILLS)
    found.exact_flops += flops * slower
    found.exact_depth += depth * trips * slower


def _is_of_load(shape: Shape, name: str) -> bool:
    """Is a value computed element by element from a loaded tile of all its axes?"""
    op = shape.ops[name]
    if op.kind is Kind.LOAD:
        return True
    if op.kind.reduces or op.kind is Kind.ACCUM:
        return False
    return any(_is_of_load(shape, i) for i in op.inputs if shape.ops[i].axes == op.axes)

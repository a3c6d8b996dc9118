"""How long a candidate will take: an estimate from device figures, to rank by and to be honest about.

MCFuser §4.3 (eq. 2): t = (t_mem + t_comp) * alpha, with each statement's traffic its tile times its trip count after
hoisting. `mcfuser_us` is that formula as published. Its alpha doubles the time of a grid of one block per processor,
where few-row kernels with deep pipelines already reach the device's bandwidth, and it prefers resident weights to full
pipelines. `estimate_us` keeps t_mem and t_comp, lets stages overlap them, and puts occupancy, bytes in flight, wave
quantisation and the paths to the tensor cores in alpha's place. Constants below were chosen for Hopper; they rank, they
do not predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.target import Target
from mugraph.ir.tensors import ITEMSIZE
from mugraph.search.tiles import Product, Shape

LATENCY_US = 0.9
"""From a load's issue to its data, device memory under load."""
STEP_US = 0.12
"""Of one loop iteration besides its data: synchronisation, address arithmetic, issue."""
CACHE_SPEEDUP = 2.2
"""Second-level cache bandwidth over device memory's."""
LANES_PER_US = 1.2e5
"""Element-wise operations one processor does in a microsecond, conversions included."""
SHARED_BYTES_PER_US = 2.0e5
"""Of one processor's shared memory."""
REGISTERS = 65_536
MAX_REGISTERS = 224
"""Per thread, of values; the rest of the 255 holds addresses and masks."""
WARPS = 64
WIDE_LEFT = 64
"""Rows of the left operand that the wide tensor-core path needs; fewer take the narrow one."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one block occupies. shared: bytes; registers: per thread; blocks: that fit on one processor (0: none)."""

    shared: int
    registers: int
    blocks: int


def usage(shape: Shape, schedule: Schedule, target: Target) -> Usage:
    """Estimated resources: prefetched tiles once per stage, computed operands of products once, values in registers."""
    tiles = {axis: shape.tile(schedule, axis) for axis in shape.sizes}
    shared = 0
    live = 0
    peak = 0
    for op in shape.block.ops:
        elements = shape.elements(tiles, op)
        looped = bool(shape.varies[op.name])
        if op.kind is Kind.LOAD:
            if op.name in shape.feeds_dot:
                shared += elements * shape.itemsize[op.tensor] * (schedule.num_stages if looped else 1)
            raw = op.name in shape.raw
            peak = max(peak, 0 if raw else elements // 2)
            live += 0 if raw or looped else elements // 2
        elif op.kind is Kind.ACCUM:
            live += elements
        elif op.kind not in (Kind.CONST, Kind.STORE):
            if op.name in shape.operands:
                shared += elements * 2
            peak = max(peak, elements)
    threads = 32 * schedule.num_warps
    registers = 24 + (live + peak) // threads
    fitting = min(target.shared // max(shared + 1024, 1024), REGISTERS // (min(registers, 255) * threads))
    return Usage(shared, registers, min(fitting, WARPS // schedule.num_warps, 16))


def estimate_us(block: BlockGraph | Shape, schedule: Schedule, target: Target, used: Usage | None = None) -> float:
    """Microseconds, launch included; infinite where no block fits on a processor. used: if it is known already."""
    shape = block if isinstance(block, Shape) else Shape(block)
    used = used or usage(shape, schedule, target)
    if not used.blocks:
        return float("inf")
    blocks = schedule.blocks(shape.sizes)
    tiles = {axis: shape.tile(schedule, axis) for axis in shape.sizes}
    unique, moved, per_step = _traffic(shape, schedule, blocks)
    steps = prod(ceil(shape.sizes[axis] / tile) for axis, tile in schedule.loops.items()) if schedule.loops else 1

    running = min(blocks, target.processors * used.blocks)
    depth = max(1, schedule.num_stages - 1) if steps > 1 else 1
    in_flight = running * max(1.0, per_step * min(depth, steps))
    reach = min(1.0, in_flight / (target.bandwidth * LATENCY_US))
    waves = ceil(blocks / running)
    quantised = waves * running / blocks  # the last wave's idle share
    idle = max(1.0, target.processors / blocks)

    t_mem = unique / target.bandwidth + (moved - unique) / (target.bandwidth * CACHE_SPEEDUP)
    t_mem = t_mem / reach * (1 + 0.3 * (max(quantised, idle) - 1))
    t_comp = _compute(shape, schedule, target, tiles, blocks) * quantised * idle
    # A block's own chain: each iteration waits at least for its issue, the first for its data.
    chain = waves * (LATENCY_US + steps * STEP_US * (1.0 if depth > 1 else 1 + LATENCY_US / STEP_US))
    # Stages overlap the two; without any they follow one another, as in MCFuser's sum.
    exposed = min(t_mem, t_comp) / (depth if steps > 1 else 1)
    return target.launch_us + max(t_mem, t_comp, chain) + exposed


def mcfuser_us(block: BlockGraph | Shape, schedule: Schedule, target: Target) -> float:
    """MCFuser eq. 2 to 5 as published: (t_mem + t_comp) * (blocks + processors) / blocks, no launch."""
    shape = block if isinstance(block, Shape) else Shape(block)
    blocks = schedule.blocks(shape.sizes)
    tiles = {axis: shape.tile(schedule, axis) for axis in shape.sizes}
    _, moved, _ = _traffic(shape, schedule, blocks)
    flops = 0.0
    for op in shape.block.block_ops:
        lanes = shape.elements(tiles, op) * prod(tiles[axis] for axis in op.over if op.kind is not Kind.ACCUM)
        flops += lanes * (2 if op.kind is Kind.DOT else 1) * shape.trips(schedule, op) * blocks
    alpha = (blocks + target.processors) / blocks
    return (moved / target.bandwidth + flops / target.flops) * alpha


def estimate_library_us(program: TensorProgram, target: Target) -> float:
    """The program run operator by operator: for each, the larger of its traffic's and its arithmetic's time, and a
    launch. Scaling by a constant and adding one come with the operator before them."""
    ops = {op.name: op for op in program.ops}
    dtypes = {t.name: t.dtype for t in program.tensors}
    width = max((ITEMSIZE[d] for d in dtypes.values()), default=2)
    total = 0.0
    for op in program.compute_ops:
        operands = [ops[i] for i in op.inputs]
        if op.kind in (Kind.ADD, Kind.MUL, Kind.DIV) and any(i.kind is Kind.CONST for i in operands):
            continue
        moved = sum(_elements(program, i.axes) for i in {o.name: o for o in operands}.values())
        moved += _elements(program, op.axes)
        flops = 2.0 * _elements(program, (*op.axes, *op.over)) if op.kind is Kind.DOT else 0.0
        total += max(moved * width / target.bandwidth, flops / target.flops) + target.launch_us
    return total


def _elements(program: TensorProgram, axes: tuple[str, ...]) -> int:
    return prod(program.sizes[axis] for axis in axes)


def _traffic(shape: Shape, schedule: Schedule, blocks: int) -> tuple[float, float, float]:
    """Bytes: of all tensors once, of all blocks together, and of one block in one iteration."""
    unique = moved = per_step = 0.0
    for op in shape.block.ops:
        if op.kind not in (Kind.LOAD, Kind.STORE):
            continue
        width = shape.itemsize[op.tensor]
        whole = width * prod(shape.sizes[axis] for axis in op.axes)
        tile = width * prod(min(schedule.tile(axis, shape.sizes[axis]), shape.sizes[axis]) for axis in op.axes)
        unique += whole
        moved += max(whole, tile * shape.trips(schedule, op) * blocks)
        if op.kind is Kind.LOAD:
            per_step += tile
    return unique, moved, per_step


def _compute(shape: Shape, schedule: Schedule, target: Target, tiles: dict[str, int], blocks: int) -> float:
    """Microseconds of arithmetic if all processors were busy: products by their tensor-core path, the rest by lanes."""
    total = 0.0
    for op in shape.block.block_ops:
        if op.kind is Kind.DOT:
            continue
        source = shape.ops[op.inputs[0]] if op.kind is Kind.SUM else op
        lanes = shape.elements(tiles, source) * shape.trips(schedule, op) * blocks
        weight = 4 if op.kind in (Kind.EXP, Kind.UNARY, Kind.SQRT) else 2 if op.kind is Kind.DIV else 1
        total += weight * lanes / (LANES_PER_US * target.processors)
    return total + sum(_product(shape, p, schedule, target, tiles, blocks) for p in shape.products)


def _product(
    shape: Shape, product: Product, schedule: Schedule, target: Target, tiles: dict[str, int], blocks: int
) -> float:
    """Of one DOT: its flops, and what its operands' way to the tensor cores costs."""
    runs = shape.trips(schedule, product.op) * blocks
    rows, columns, depth = (prod(tiles[axis] for axis in side) for side in product.sides)
    rows_load, columns_load = product.left_is_load, product.right_is_load
    if schedule.swap:
        rows, columns, rows_load, columns_load = columns, rows, columns_load, rows_load
    if min(rows, columns) == 1:  # matrix-vector: multiply and sum
        return 2 * rows * columns * depth * runs / (LANES_PER_US * target.processors)
    efficiency = 0.65 if rows >= WIDE_LEFT and schedule.num_warps >= 4 else 0.3
    total = 2 * rows * columns * depth * runs / (target.flops * efficiency)
    narrow = rows < WIDE_LEFT
    everywhere = SHARED_BYTES_PER_US * target.processors
    if not rows_load and rows * depth > 64 * 64 and columns >= rows and narrow:
        total += 2 * rows * depth * runs / everywhere
    if not rows_load and narrow:  # arithmetic before a narrow product stops the prefetch of the other operand
        total += 2.0 * columns * depth * runs / target.bandwidth if shape.varies[product.op.name] else 0.0
    if not columns_load:  # a computed right operand goes through shared memory in each iteration
        total += (4 if narrow else 2) * 2 * columns * depth * runs / everywhere
        if narrow:
            total += 2.0 * rows * depth * runs / target.bandwidth
    big = columns * depth if columns >= rows else rows * depth
    if not (columns_load if columns >= rows else rows_load) and big > 32 * depth:
        total += 3.0 * big * runs / everywhere  # arithmetic on the larger operand, the weight
    return total

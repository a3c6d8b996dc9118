"""How long a candidate will take: an estimate from device figures, to rank by and to be honest about.

MCFuser §4.3 (eq. 2): t = (t_mem + t_comp) * alpha, with each statement's traffic its tile times its trip count after
hoisting. `mcfuser_us` is that formula as published. Its alpha doubles the time of a grid of one block per processor,
where few-row kernels with deep pipelines already reach the device's bandwidth, and it prefers resident weights to full
pipelines. `estimate_us` is made of two clocks: memory (bandwidth, or the latency that the stages in flight do not
cover) and one processor's blocks (the chain of exchanges and instructions in each iteration: kernels of few rows wait
for themselves, not for arithmetic). Constants were fitted to several hundred kernels measured on an H200
(`python -m mugraph.research.calibration`); they are costs of operations, the same for every program.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from mugraph.baseline.cost import products_us
from mugraph.baseline.rates import fitted
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.library import LibraryCall
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.tiles import Shape, Tiles
from mugraph.search.schedules.work import Work, work
from mugraph.targets import Target

LATENCY_US = 0.54
"""From a load's issue to its data, device memory."""
FILL_US = 1.04
"""Of a loop's start and end: an empty pipeline, and its drain."""
FLOOR_US = 1.1
"""What the least kernel, whose time is the target's launch_us, does besides starting: a load and a store."""
PROCESSOR_SHARE = 2.4
"""Of the device's bandwidth one processor can draw, as a multiple of its even share."""
CACHE_SPEEDUP = 2.26
"""Second-level cache bandwidth over device memory's."""
WIDE_US = 0.04
"""Of a wide product besides its flops: it is waited for."""
WIDE_SHARE, NARROW_SHARE = 0.9, 0.39
"""Of a processor's peak, reached by each path."""
SHARED_BYTES_PER_US = 2.5e5
PASSED_BYTES_PER_US = 3.1e4
"""Of operands that go from registers through shared memory: stores, a barrier, loads."""
CONVERTED_US = 6.5e-4
"""Per element of a product with a float32 operand."""
REDUCTION_US, EXP_US = 0.06, 0.146
"""Of a reduction over a tile; of an exp, whose running maximum is one and whose accumulators are rescaled."""
EXCHANGE = 0.74
"""How much dearer reductions are with each four warps more."""
LANE_US = 3.9e-4
"""Of one element-wise operation of one thread, waiting as long as issuing."""
LIBRARY_BANDWIDTH, LIBRARY_FLOPS = 0.85, 0.75
"""Share of the device's figures that a library's attention reaches."""
LIBRARY_SOFTMAX_US, LIBRARY_STEP_US = 1.9, 1.1
"""Of a library's attention: its start and end, and one step over its keys. Twelve shapes measured on an H100 (PyTorch
2.11) took 0.7 to 1.4 times what is estimated with these."""
STREAM_SPREAD = 1e-6
"""Of the time that a grid's waves would take one after the other: what schedules of such a kernel are told apart by."""
OVERLAP_LOST = 0.3
"""Of the shorter of the two clocks: not hidden behind the longer one."""
REGISTERS = 65_536
MAX_REGISTERS = 224
"""Per thread, of values; the rest of the 255 holds addresses and masks."""
SCATTERED = 2
"""Registers of an element that has an address of its own."""
WARPS = 64


@dataclass(frozen=True, slots=True)
class Usage:
    """What one block occupies. shared: bytes; registers: per thread; blocks: that fit on one processor (0: none)."""

    shared: int
    registers: int
    blocks: int


def usage(shape: Shape, schedule: Schedule, target: Target) -> Usage:
    """Estimated resources: prefetched tiles once per stage, computed operands of products once, values in registers."""
    once, staged, values = footprint(shape, schedule)
    shared = once + staged * schedule.num_stages
    threads = 32 * schedule.num_warps
    registers = 24 + values // threads
    fitting = min(target.shared // max(shared + 1024, 1024), REGISTERS // (min(registers, 255) * threads))
    return Usage(shared, registers, min(fitting, WARPS // schedule.num_warps, 16))


def footprint(shape: Shape, schedule: Schedule) -> tuple[int, int, int]:
    """What does not depend on warps and stages: shared bytes held once, those of each stage, and values in registers
    at most. Remembered: schedules that differ in nothing else are many."""
    tiles = shape.tiles(schedule)
    if tiles.footprint is None:
        tiles.footprint = _footprint(shape, tiles)
    return tiles.footprint


def _footprint(shape: Shape, tiles: Tiles) -> tuple[int, int, int]:
    once = staged = live = peak = 0
    for op in shape.block.ops:
        elements = shape.elements(tiles, op)
        looped = bool(shape.varies[op.name])
        if op.kind is Kind.LOAD:
            if op.name in shape.feeds_dot and looped:
                staged += elements * shape.itemsize[op.tensor]
            elif op.name in shape.feeds_dot:
                once += elements * shape.itemsize[op.tensor]
            raw = op.name in shape.raw
            addresses = SCATTERED * elements if op.name in shape.scattered else 0
            peak = max(peak, addresses, 0 if raw else elements // 2)
            live += 0 if raw or looped else elements // 2
        elif op.kind is Kind.ACCUM:
            live += elements
        elif op.kind not in (Kind.CONST, Kind.MASK, Kind.STORE):
            if op.name in shape.operands:
                once += elements * 2
            peak = max(peak, shape.terms(tiles, op))
    return once, staged, live + peak


def estimate_us(
    block: BlockGraph | Shape, schedule: Schedule, target: Target, used: Usage | None = None, found: Work | None = None
) -> float:
    """Microseconds, launch included; infinite where no block fits on a processor. used, found: if known already (work
    does not depend on the stages)."""
    shape = block if isinstance(block, Shape) else Shape(block)
    used = used or usage(shape, schedule, target)
    if not used.blocks:
        return float("inf")
    blocks = schedule.blocks(shape.sizes)
    found = found or work(shape, schedule, blocks)
    each = ceil(blocks / target.processors)  # blocks a processor runs
    together = min(used.blocks, each)
    waves = ceil(each / together)
    chain, busy = _processor_us(found, schedule, target)
    computing = waves * max(chain + busy, together * busy)
    if each == 1:  # one wave is over with its longest block
        computing *= shape.longest(schedule)
    loading = _memory_us(found, schedule, target, blocks, waves, looped=bool(shape.block.loops))
    if shape.is_stream:
        return target.launch_us + max(waves * together * busy, _stream_us(found, target)) + STREAM_SPREAD * loading
    long, short = max(computing, loading), min(computing, loading)
    return target.launch_us + max(0.0, long + OVERLAP_LOST * short - FLOOR_US)


def _processor_us(found: Work, schedule: Schedule, target: Target) -> tuple[float, float]:
    """Of one block: what it waits for itself, which blocks beside it can fill, and what it keeps the processor with."""
    peak = target.flops / target.processors
    exchange = 1 + EXCHANGE * (schedule.num_warps / 4 - 1)
    chain = found.fills * FILL_US + found.waits * LATENCY_US + found.wide * WIDE_US
    chain += (found.reductions * REDUCTION_US + found.exps * EXP_US) * exchange
    chain += found.lanes * LANE_US
    busy = found.narrow_flops / (peak * NARROW_SHARE) + found.wide_flops / (peak * WIDE_SHARE)
    busy += found.shared_bytes / SHARED_BYTES_PER_US + found.passed_bytes / PASSED_BYTES_PER_US
    busy += found.converted * CONVERTED_US + found.lanes * LANE_US * schedule.num_warps / 4
    return chain, busy


def _memory_us(found: Work, schedule: Schedule, target: Target, blocks: int, waves: int, *, looped: bool) -> float:
    """Of the grid's traffic: in each iteration its bytes, or the latency its stages in flight leave uncovered."""
    drawn = min(1.0, blocks / target.processors * PROCESSOR_SHARE) * target.bandwidth
    traffic = found.unique / drawn + (found.drawn - found.unique) / (drawn * CACHE_SPEEDUP)
    step = traffic / (found.steps * waves)
    if not looped:
        return waves * (LATENCY_US + step)
    covered = max(1, schedule.num_stages - 1)
    iteration = max(step, (LATENCY_US + step) / covered)
    return waves * (LATENCY_US + found.steps * iteration + (found.fills - 1) * FILL_US)


def _stream_us(found: Work, target: Target) -> float:
    """Of the traffic of a kernel that computes element by element, whose blocks do not wait for one another: as fast as
    torch.compile's, which are the same."""
    return found.drawn / (target.bandwidth * fitted().rates.fused_stream)


def estimate_call_us(call: LibraryCall, target: Target) -> float:
    """Microseconds of a pre-defined kernel, launch included: as much as where PyTorch's own code runs it."""
    dtype = call.out.tensor.dtype
    moved = ITEMSIZE[dtype] * call.moved
    if call.steps is None:
        us = products_us(call.products, moved, dtype, target, tf32=call.takes_tf32)
        return us + (call.launches - 1) * target.launch_us
    share = LIBRARY_FLOPS if ITEMSIZE[dtype] == 2 else fitted().rates.float32
    computing = sum(2.0 * p.matrices * p.rows * p.columns * p.depth for p in call.products) / (target.flops * share)
    waiting = LIBRARY_SOFTMAX_US + ceil(call.steps.blocks / target.processors) * call.steps.each * LIBRARY_STEP_US
    long = max(moved / (target.bandwidth * LIBRARY_BANDWIDTH), computing, waiting)
    return call.launches * target.launch_us + max(0.0, long + FILL_US + LATENCY_US - FLOOR_US)


def mcfuser_us(block: BlockGraph | Shape, schedule: Schedule, target: Target) -> float:
    """MCFuser eq. 2 to 5 as published: (t_mem + t_comp) * (blocks + processors) / blocks, no launch."""
    shape = block if isinstance(block, Shape) else Shape(block)
    blocks = schedule.blocks(shape.sizes)
    tiles = shape.tiles(schedule)
    moved = work(shape, schedule, blocks).moved
    flops = 0.0
    for op in shape.block.block_ops:
        lanes = shape.elements(tiles, op) * prod(tiles[axis] for axis in op.over if op.kind is not Kind.ACCUM)
        flops += lanes * (2 if op.kind.contracts else 1) * shape.trips(schedule, tiles, op) * blocks
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
        if (op.kind.scaled_by or op.kind.shifted_by) and any(i.kind is Kind.CONST for i in operands):
            continue
        moved = sum(_held(program, i) for i in {o.name: o for o in operands}.values())
        moved += _elements(program, op.axes)
        flops = 2.0 * _elements(program, (*op.axes, *op.over)) if op.kind.contracts else 0.0
        total += max(moved * width / target.bandwidth, flops / target.flops) + target.launch_us
    return total


def _held(program: TensorProgram, op: Op) -> int:
    """Elements of a value as it lies in memory: a window reads some of them several times."""
    if op.kind is Kind.LOAD:
        return prod(program.tensor(op.tensor).shape(program.sizes))
    return _elements(program, op.axes)


def _elements(program: TensorProgram, axes: tuple[str, ...]) -> int:
    return prod(program.sizes[axis] for axis in axes)

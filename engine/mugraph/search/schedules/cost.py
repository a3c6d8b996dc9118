"""How long a candidate will take: an estimate from device figures, to rank by and to be honest about.

MCFuser §4.3 (eq. 2): t = (t_mem + t_comp) * alpha, with each statement's traffic its tile times its trip count after
hoisting. `mcfuser_us` is that formula as published. Its alpha doubles the time of a grid of one block per processor,
where few-row kernels with deep pipelines already reach the device's bandwidth, and it prefers resident weights to full
pipelines. `estimate_us` is made of two clocks: memory (bandwidth, or the latency that the stages in flight do not
cover) and one processor's blocks (the chain of exchanges and instructions in each iteration: kernels of few rows wait
for themselves, not for arithmetic). `costs.py` has what they are fitted to. A kernel's start and end cost as much as
those of PyTorch's kernels (`baseline.rates`); what a region costs once is not counted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from mugraph.baseline.cost import CHANNELS_LAST, attention_us, copy_us, products_us, rows_us
from mugraph.baseline.rates import fitted
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.library import LibraryCall
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.costs import Costs, fitted_costs
from mugraph.search.schedules.in_parts import shared_bytes
from mugraph.search.schedules.pooling import WHOLE, has_whole_taps, is_pooling, read_us, whole_taps_us
from mugraph.search.schedules.rows import is_of_rows, reading_and_computing, slower
from mugraph.search.schedules.tiles import Shape, Tiles
from mugraph.search.schedules.work import Work, work
from mugraph.targets import Target

STREAM_SPREAD = 1e-6
"""Of the time that a grid's waves would take one after the other: what schedules of such a kernel are told apart by."""
LINES = 0.01
"""Of the time of what tiles with parts of cache lines would move in whole ones; and of a stream whose tiles change
places in shared memory, by how few blocks lie beside one another there. (Not fitted: it tells schedules apart that are
alike otherwise. A transposing copy by tiles of 32 bytes a side has four times the requests of one by 128.)"""
REGISTERS = 65_536
MAX_REGISTERS = 224
"""Per thread, of values; the rest of the 255 holds addresses and masks."""
SCATTERED = 2
"""Registers of an element that has an address of its own."""
WARPS = 64
_OTHERS = 4
"""Where there are no products, blocks beside one another cover latency as so many tiles loaded ahead do."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one block occupies. shared: bytes; registers: per thread; blocks: that fit on one processor (0: none)."""

    shared: int
    registers: int
    blocks: int


def usage(shape: Shape, schedule: Schedule, target: Target) -> Usage:
    """Estimated resources: prefetched tiles once per stage, computed operands of products once, values in registers."""
    once, staged, values = footprint(shape, schedule)
    if not shape.dot_axes:
        shared = once + staged * schedule.tiles_ahead(products=False)
    elif schedule.precision == "ieee":
        shared = once + staged * schedule.num_stages
    else:  # a tile is free again once it has been cut into parts
        shared = once + staged * max(1, schedule.num_stages - 1) + shared_bytes(shape, shape.tiles(schedule), schedule)
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
    if shape.turns:
        once = max(shape.itemsize[op.tensor] * shape.elements(tiles, op) for op in shape.stores)
    for op in shape.block.ops:
        elements = shape.elements(tiles, op)
        looped = bool(shape.varies[op.name])
        if op.kind is Kind.LOAD:
            if (op.name in shape.feeds_dot or not shape.dot_axes) and looped:
                staged += elements * shape.itemsize[op.tensor]
            elif op.name in shape.feeds_dot:
                once += elements * shape.itemsize[op.tensor]
            raw = op.name in shape.raw
            addresses = SCATTERED * elements if op.name in shape.scattered else 0
            peak = max(peak, addresses, 0 if raw else elements // 2)
            live += 0 if raw or looped else elements // 2
        elif op.kind is Kind.ACCUM:
            live += elements
        elif not op.kind.is_leaf and op.kind is not Kind.STORE and op.name not in shape.added:
            if op.name in shape.operands:
                once += elements * 2
            terms = shape.terms(tiles, op)
            peak = max(peak, terms // 2 if op.name in shape.summed else terms)
    return once, staged, live + peak


def estimate_us(
    block: BlockGraph | Shape,
    schedule: Schedule,
    target: Target,
    used: Usage | None = None,
    found: Work | None = None,
    costs: Costs | None = None,
) -> float:
    """Microseconds, a kernel's start and end included; infinite where no block fits on a processor. used, found: if
    known already (work does not depend on the stages). costs: by default those that are kept"""
    shape = block if isinstance(block, Shape) else Shape(block)
    used = used or usage(shape, schedule, target)
    if not used.blocks:
        return float("inf")
    costs = costs or fitted_costs().costs
    blocks = schedule.blocks(shape.sizes)
    found = found or work(shape, schedule, blocks)
    each = ceil(blocks / target.processors)  # blocks a processor runs
    together = min(used.blocks, each)
    waves = ceil(each / together)
    chain, busy = _processor_us(found, schedule, target, costs)
    if is_of_rows(shape):
        reading = _traffic_us(found, target, blocks, costs) * slower(shape, schedule, found)
        long = max(chain + busy, reading_and_computing(reading, each * busy))
        return costs.start_us + max(0.0, costs.latency_us + long - costs.floor_us)
    computing = waves * max(chain + busy, together * busy)
    if each == 1:  # one wave is over with its longest block
        computing *= shape.longest(schedule)
    ahead = max(1, schedule.num_stages - 1) if shape.dot_axes else _OTHERS
    loading = _memory_us(found, ahead, target, blocks, waves, costs, looped=bool(shape.block.loops))
    start = costs.start_us
    if is_pooling(shape, schedule):
        stream = found.unique / (target.bandwidth * fitted().rates.fused_stream)
        return start + max(waves * together * busy, stream, read_us(shape, schedule, found.drawn, target))
    if shape.is_stream:
        stream = stream_us(found, target)
        parted = LINES * (found.lined - found.drawn) / target.bandwidth
        exchanged = LINES * stream / used.blocks if shape.turns else 0.0
        return start + max(waves * together * busy, stream) + STREAM_SPREAD * loading + parted + exchanged
    long, short = max(computing, loading), min(computing, loading)
    serial = costs.overlap if shape.dot_axes else costs.serial  # only what products take is loaded ahead
    alone = serial + (1 - serial) / (found.steps * waves * together)
    us = start + max(0.0, long + alone * short - costs.floor_us)
    if has_whole_taps(shape, schedule):
        return max(us * WHOLE, start + whole_taps_us(shape, schedule, blocks, target))
    return us


def least_us(moved: int, target: Target) -> float:
    """Microseconds of any kernel that reads and writes so many bytes."""
    costs = fitted_costs().costs
    return costs.start_us + max(0.0, moved / target.bandwidth - costs.floor_us)


def _processor_us(found: Work, schedule: Schedule, target: Target, costs: Costs) -> tuple[float, float]:
    """Of one block: what it waits for itself, which blocks beside it can fill, and what it keeps the processor with."""
    peak = target.flops / target.processors
    exchange = 1 + costs.exchange * (schedule.num_warps / 4 - 1)
    chain = found.fills * costs.fill_us + found.waits * costs.latency_us + found.wide * costs.wide_us
    chain += (found.reductions * costs.reduction_us + found.exps * costs.exp_us) * exchange
    chain += found.exact_depth * costs.exact_us
    issued = costs.issue_us * schedule.num_warps / 4
    chain += found.lanes * max(0.0, costs.lane_us - issued)
    products = found.narrow_flops / (peak * costs.narrow) + found.wide_flops / (peak * costs.wide)
    busy = max(products, found.shared_bytes / costs.shared) + found.passed_bytes / costs.passed
    busy += found.exact_flops / (peak * costs.exact) + found.peak_flops / peak + found.lanes * issued
    return chain, busy


def _memory_us(
    found: Work, ahead: int, target: Target, blocks: int, waves: int, costs: Costs, *, looped: bool
) -> float:
    """Of the grid's traffic: in each iteration its bytes, or the latency that tiles loaded ahead leave uncovered."""
    step = _traffic_us(found, target, blocks, costs) / (found.steps * waves)
    if not looped:
        return waves * (costs.latency_us + step)
    iteration = max(step, (costs.latency_us + step) / ahead)
    return waves * (costs.latency_us + found.steps * iteration + (found.fills - 1) * costs.fill_us)


def _traffic_us(found: Work, target: Target, blocks: int, costs: Costs) -> float:
    """Of the grid's bytes at the bandwidth that so many blocks draw, whatever they wait for."""
    drawn = min(costs.bandwidth, blocks / target.processors * costs.processor) * target.bandwidth
    return found.unique / drawn + (found.drawn - found.unique) / (drawn * costs.cached)


def memory_floor_us(found: Work, target: Target, blocks: int, costs: Costs) -> float:
    """Of the grid's traffic at least, however many stages are in flight."""
    return costs.latency_us + _traffic_us(found, target, blocks, costs)


def stream_us(found: Work, target: Target) -> float:
    """Of the traffic of a kernel that computes element by element, whose blocks do not wait for one another: as fast as
    torch.compile's, which are the same."""
    return (found.drawn + found.parted) / (target.bandwidth * fitted().rates.fused_stream)


def estimate_call_us(call: LibraryCall, target: Target) -> float:
    """Microseconds of a pre-defined kernel, its start and end included: as much as where PyTorch's own code runs it."""
    dtype = call.out.tensor.dtype
    if call.has_softmax:
        us = attention_us(call.products, call.moved, dtype, target, causal=call.is_causal, truths=call.truths)
    elif call.row:
        written = ITEMSIZE[dtype] * prod(call.out.shape)
        us = rows_us(call.function, call.moved, written, call.row, call.functions, target)
    else:
        us = products_us(call.products, call.moved, call.dtype or dtype, target, tf32=call.tf32)
        # The copy of its operand is counted.
        us *= CHANNELS_LAST if call.format and call.tf32 and dtype == "f32" else 1.0
    return us + (copy_us(ITEMSIZE[dtype] * call.copied, target) if call.copied else 0.0)


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
    total, start = 0.0, fitted().rates.kernel_us
    for op in program.compute_ops:
        operands = [ops[i] for i in op.inputs]
        if (op.kind.scaled_by or op.kind.shifted_by) and any(i.kind is Kind.CONST for i in operands):
            continue
        moved = sum(_held(program, i) for i in {o.name: o for o in operands}.values())
        moved += _elements(program, op.axes)
        flops = 2.0 * _elements(program, (*op.axes, *op.over)) if op.kind.contracts else 0.0
        total += max(moved * width / target.bandwidth, flops / target.flops) + start
    return total


def _held(program: TensorProgram, op: Op) -> int:
    """Elements of a value as it lies in memory: a window reads some of them several times."""
    if op.kind is Kind.LOAD:
        return prod(program.tensor(op.tensor).shape(program.sizes))
    return _elements(program, op.axes)


def _elements(program: TensorProgram, axes: tuple[str, ...]) -> int:
    return prod(program.sizes[axis] for axis in axes)

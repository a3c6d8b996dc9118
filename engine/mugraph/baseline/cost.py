"""How long PyTorch takes for recorded calls, by estimate: as the code runs, and compiled by torch.compile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import ceil, prod

from mugraph.baseline.estimate import Baseline
from mugraph.baseline.fused import fused, joined, with_attentions
from mugraph.baseline.launch import Launch, Values
from mugraph.baseline.launches import launches, mask_bytes
from mugraph.baseline.memory import held_bytes
from mugraph.baseline.rates import Rates, fitted
from mugraph.baseline.rows import row_launch
from mugraph.ir.calls import Call, operands
from mugraph.ir.dtypes import itemsize
from mugraph.ir.library import Product
from mugraph.ir.ops import Tf32
from mugraph.targets import Target

_TILE = (64, 128)
"""Least and most rows or columns of a tile of a library's product."""
_STEP = 64
_ROWS, _KEYS = 128, 128
"""Rows of a thread block, and keys of a step, of an attention."""
_SHARED_ROW = 1 << 15
"""Bytes; several thread blocks share a longer one, or enough of them are in flight."""
_BLOCKS = 8
"""Thread blocks of a reduction that a processor runs side by side."""
_SLOW = 10.0
"""Of an attention in float32, which takes no tensor cores."""
CHANNELS_LAST = 0.8
"""Of a convolution's time in float32, where its operand is turned channels last before and the kernel that follows
reads its result so: what torch.compile takes less its own pass, in three points that were measured."""
_SCATTERED = 0.2e6
"""Elements a microsecond that PyTorch copies from one order in memory to another: 0.12 to 0.23 million on an H100
(26 November, images channels last and matrices turned, 16 bits and 32)."""
_WIDE = ("f16", "bf16")
_FLOAT8 = ("f8e4m3", "f8e5m2")
_PROCESSORS = 132
"""Of the device that the rates were fitted on."""


def baseline(
    calls: Sequence[Call], values: Values, read_after: Collection[int], target: Target, rates: Rates | None = None
) -> Baseline:
    """Without what a region costs once (`Rates.graph_us`). read_after: values that the calls make and others read"""
    rates = rates or fitted().rates
    each = launches(calls, values)
    groups = fused(with_attentions(each))
    held = {value: held_bytes(values[value]) for launch in each for value in launch.reads if value in values}
    compiled = [joined(group, groups, read_after, held) for group in groups]
    return Baseline(_us(each, rates, target, compiled=False), _us(compiled, rates, target, compiled=True))


def _us(run: Sequence[Launch], rates: Rates, target: Target, *, compiled: bool) -> float:
    total = 0.0
    near: dict[int, int] = {}
    """What was written a moment ago, and is still in the cache."""
    for launch in run:
        us = rates.kernel_us + launch_us(launch, near, rates, target, compiled=compiled)
        if launch.turned:
            us = _turned_alone_us(us, copy_us(launch.turned, target, launch.turned // itemsize(launch.dtype)), rates)
        total += CHANNELS_LAST * us if compiled and launch.may_turn else us
        near.update(launch.writes)
        for value in list(near):
            if sum(near.values()) <= target.l2 / 2:
                break
            del near[value]
    return total


def launch_us(launch: Launch, near: Collection[int], rates: Rates, target: Target, *, compiled: bool) -> float:
    """Of one kernel, without its start and end. near: values that the cache still holds"""
    cold = sum(size for value, size in launch.reads.items() if value not in near)
    warm = sum(size for value, size in launch.reads.items() if value in near)
    # What is written goes to the cache first, if it fits.
    written = sum(launch.writes.values())
    warm, cold = (warm + written, cold) if written <= target.l2 / 2 else (warm, cold + written)
    share = rates.library if launch.is_library else rates.fused_stream if compiled else rates.stream
    memory = (cold + warm / rates.cached) / (target.bandwidth * share)
    match launch.work:
        case "elementwise":
            scattered = 0.0 if compiled else launch.scattered / _SCATTERED
            return max(memory, scattered, _functions_us(launch, rates, target))
        case "reduction":
            start, row = (rates.fused_reduce_us, rates.fused_row_us) if compiled else (rates.reduce_us, rates.row_us)
            along = start + row * min(launch.row, _SHARED_ROW) / 2048
            alone = 0.0 if compiled else _rows_alone_us(launch, rates, target)
            return max(max(memory, _functions_us(launch, rates, target)) + along, alone)
        case "pooling":
            return memory if compiled and not launch.is_apart else max(memory, _pooling_us(launch, rates, target))
        case "attention":
            return max(memory, _attention_us(launch.products, launch.dtype, rates, target, causal=launch.is_causal))
        case _:
            slow = not launch.tf32 or launch.is_narrow
            share = rates.float32 / 2 if launch.is_narrow else _share(launch.dtype, rates, launch.tf32, target)
            return _products_us(launch.products, memory, share, _least(launch.dtype, slow=slow), rates, target)


def products_us(products: Sequence[Product], moved: int, dtype: str, target: Target, *, tf32: Tf32 = "") -> float:
    """Of one library's kernel, its start and end included.

    products: one after the other
    moved:    bytes read and written
    dtype:    that is multiplied; infinity of one that the device does not multiply
    tf32:     the setting by which what is float32 is computed on the tensor cores
    """
    if dtype in _FLOAT8 and not target.float8:
        return float("inf")
    rates = fitted().rates
    memory = moved / (target.bandwidth * rates.library)
    share = _share(dtype, rates, tf32, target)
    return rates.kernel_us + _products_us(products, memory, share, _least(dtype, slow=not tf32), rates, target)


def attention_us(
    products: Sequence[Product], moved: int, dtype: str, target: Target, *, causal: bool = False, truths: int = 0
) -> float:
    """Of a library's attention, its start and end included; of one with a mask as without.

    moved:  bytes read and written
    truths: elements of a mask that is made numbers first
    """
    rates = fitted().rates
    memory = moved / (target.bandwidth * rates.library)
    made = [rates.kernel_us + size / (target.bandwidth * rates.stream) for size in mask_bytes(truths, dtype)]
    return rates.kernel_us + max(memory, _attention_us(products, dtype, rates, target, causal=causal)) + sum(made)


def rows_us(function: str, moved: int, written: int, row: int, functions: int, target: Target) -> float:
    """Of a kernel of PyTorch's that reduces rows and answers with rows as long, its start and end included.

    function: by its name in PyTorch
    moved:    bytes read and written, of which `written` are
    row:      bytes of one. functions: as of a Launch
    """
    launch = row_launch(function.rsplit(".", 1)[-1], {0: moved - written}, {1: written}, row)
    rates = fitted().rates
    return rates.kernel_us + launch_us(replace(launch, functions=functions), (), rates, target, compiled=False)


def copy_us(size: int, target: Target, scattered: int = 0) -> float:
    """Of a kernel that copies so many bytes, its start and end included. scattered: as of a Launch"""
    rates = fitted().rates
    return rates.kernel_us + max(2 * size / (target.bandwidth * rates.stream), scattered / _SCATTERED)


def turned_us(calls: Sequence[Call], values: Values, target: Target, lying: Collection[int] = ()) -> float:
    """Of convolutions, each with its operand channels last, and the copy that turns it. lying: values that lie so
    already, and are not copied"""
    total, rates = 0.0, fitted().rates
    for call in calls:
        run = launches([call], values)
        us = _us(run, rates, target, compiled=False)
        second = _us(run[2:3], rates, target, compiled=False)  # in 16 bits: the copy of the result, which is not made
        copied = operands(call)[0]
        copy = copy_us(held_bytes(values[copied]), target, prod(values[copied].shape))
        if any(one.may_turn for one in run):
            total += _turned_alone_us(us, copy, rates) + (0.0 if copied in lying else copy)
        else:
            total += us - second - (copy if copied in lying else 0.0)
    return total


def _turned_alone_us(us: float, copy: float, rates: Rates) -> float:
    """Of a convolution in float32 whose operand lies channels last already. The weight is turned in the call, which is
    in the share. us: as the code has it. copy: of the operand"""
    return max(rates.kernel_us, CHANNELS_LAST * us - copy)


def _rows_alone_us(launch: Launch, rates: Rates, target: Target) -> float:
    """Where a row is one thread block's: it goes along it step by step, however many processors have nothing to do.
    (A layer norm over rows of 16 MB takes 8.1 ms on an H100, of which reading and writing all of it is 0.4.)"""
    if not launch.turns or not launch.row:
        return 0.0
    rows = max(launch.writes.values(), default=0) / launch.row
    waves = max(1.0, rows / (_BLOCKS * target.processors))
    return waves * launch.turns * launch.share * rates.row_us * launch.row / 2048


def _functions_us(launch: Launch, rates: Rates, target: Target) -> float:
    return launch.functions / 2**20 * rates.function_us * _PROCESSORS / target.processors


def _pooling_us(launch: Launch, rates: Rates, target: Target) -> float:
    each = max(launch.windows * rates.window_us, launch.taps * rates.tap_us)
    return each / 2**20 * _PROCESSORS / target.processors


def _share(dtype: str, rates: Rates, tf32: Tf32, target: Target) -> float:
    """Of the tensor cores' rate of 16-bit numbers."""
    if dtype in _FLOAT8:
        return rates.float8 * (target.float8 or 1.0)
    if dtype in _WIDE:
        return rates.wide
    return {"cudnn": rates.convolved32, "cublas": rates.product_tf32, "": rates.float32}[tf32]


def _least(dtype: str, *, slow: bool) -> int:
    """Rows and columns that a tile has at least. slow: in float32, without the tensor cores"""
    return _TILE[0] if dtype in (*_WIDE, *_FLOAT8) or not slow else _TILE[1]


def _products_us(
    products: Sequence[Product], memory: float, share: float, least: int, rates: Rates, target: Target
) -> float:
    computing = sum(_product_us(one, share, least, target) for one in products)
    return max(memory, computing) + sum(ceil(one.depth / _STEP) * rates.depth_us for one in products)


def _product_us(product: Product, share: float, least: int, target: Target) -> float:
    """least: rows and columns that a tile has at least; what has one row or column only is as fast as its traffic."""
    if least > _TILE[0] and 1 in (product.rows, product.columns):
        return 0.0
    sides = (product.rows, product.columns)
    lanes = [max(least, min(n, _TILE[1])) for n in sides]
    tiles = product.matrices * prod(ceil(n / tile) for n, tile in zip(sides, lanes, strict=True))
    waves = tiles / target.processors
    flops = 2.0 * product.matrices * product.depth * prod(max(least, n) for n in sides)
    return flops / (target.flops * share) * (ceil(waves) / waves if waves > 1 else 1.0)


def _attention_us(products: Sequence[Product], dtype: str, rates: Rates, target: Target, *, causal: bool) -> float:
    first, second = products
    each = ceil(first.columns / _KEYS)
    waves = first.matrices * ceil(first.rows / _ROWS) / target.processors
    if first.rows == 1:  # then the keys are split over thread blocks
        steps = max(1.0, waves * each)
    else:  # the last rows of a causal one have all keys before them, and in the last wave nothing is beside them
        steps = ceil(waves) * each * (0.5 + 0.5 / ceil(waves) if causal else 1.0)
    wide = 0.6 + 0.4 * max(first.depth, second.columns) / 64
    slow = 1.0 if dtype in _WIDE else _SLOW
    return rates.softmax_us + steps * rates.step_us * wide * slow

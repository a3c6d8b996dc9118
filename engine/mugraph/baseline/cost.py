"""How long PyTorch takes for recorded calls, by estimate: as the code runs, and compiled by torch.compile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from mugraph.baseline.fused import OWN, fused, joined
from mugraph.baseline.launches import Launch, Values, held_bytes, launches
from mugraph.baseline.rates import Rates, fitted
from mugraph.ir.calls import Call
from mugraph.ir.library import Product
from mugraph.targets import Target

_TILE = (64, 128)
"""Least and most rows or columns of a tile of a library's product."""
_STEP = 64
_ROWS, _KEYS = 128, 128
"""Rows of a thread block, and keys of a step, of an attention."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Microseconds on the device."""

    eager_us: float
    compiled_us: float

    @property
    def best_us(self) -> float:
        return min(self.eager_us, self.compiled_us)

    @property
    def peers_us(self) -> Mapping[str, float]:
        return {"eager": self.eager_us, "torch.compile": self.compiled_us}

    def __add__(self, other: Baseline) -> Baseline:
        """Of calls one after the other."""
        return Baseline(self.eager_us + other.eager_us, self.compiled_us + other.compiled_us)


NOTHING = Baseline(0.0, 0.0)


def baseline(
    calls: Sequence[Call], values: Values, read_after: Collection[int], target: Target, rates: Rates | None = None
) -> Baseline:
    """read_after: values that the calls make and others read"""
    rates = rates or fitted().rates
    each = launches(calls, values)
    groups = fused(each)
    held = {value: held_bytes(values[value]) for launch in each for value in launch.reads if value in values}
    compiled = [joined(group, groups, read_after, held) for group in groups]
    return Baseline(_us(each, rates, target, compiled=False), _us(compiled, rates, target, compiled=True))


def _us(run: Sequence[Launch], rates: Rates, target: Target, *, compiled: bool) -> float:
    total = rates.graph_us
    near: dict[int, int] = {}
    """What was written a moment ago, and is still in the cache."""
    for launch in run:
        total += rates.kernel_us + _launch_us(launch, near, rates, target, compiled=compiled)
        near.update(launch.writes)
        for value in list(near):
            if sum(near.values()) <= target.l2 / 2:
                break
            del near[value]
    return total


def _launch_us(launch: Launch, near: Collection[int], rates: Rates, target: Target, *, compiled: bool) -> float:
    """Without the kernel's start and end."""
    cold = sum(size for value, size in launch.reads.items() if value not in near)
    warm = sum(size for value, size in launch.reads.items() if value in near)
    # What is written goes to the cache first, if it fits.
    written = sum(launch.writes.values())
    warm, cold = (warm + written, cold) if written <= target.l2 / 2 else (warm, cold + written)
    share = rates.library if launch.work in OWN else rates.fused_stream if compiled else rates.stream
    memory = (cold + warm / rates.cached) / (target.bandwidth * share)
    match launch.work:
        case "elementwise":
            return memory
        case "reduction":
            return memory + (rates.fused_reduce_us if compiled else rates.reduce_us)
        case "attention":
            return max(memory, _attention_us(launch, rates, target))
        case "product" | "convolution":
            return max(memory, sum(_product_us(one, launch, rates, target) for one in launch.products)) + sum(
                ceil(one.depth / _STEP) * rates.depth_us for one in launch.products
            )


def _product_us(product: Product, launch: Launch, rates: Rates, target: Target) -> float:
    wide = launch.dtype in ("f16", "bf16")
    share = rates.wide if wide else rates.convolved32 if launch.work == "convolution" else rates.float32
    sides = (product.rows, product.columns)
    lanes = [max(_TILE[0], min(n, _TILE[1])) for n in sides]
    tiles = product.matrices * prod(ceil(n / tile) for n, tile in zip(sides, lanes, strict=True))
    waves = tiles / target.processors
    flops = 2.0 * product.matrices * product.depth * prod(max(_TILE[0], n) for n in sides)
    return flops / (target.flops * share) * (ceil(waves) / waves if waves > 1 else 1.0)


def _attention_us(launch: Launch, rates: Rates, target: Target) -> float:
    first, second = launch.products
    blocks = ceil(first.matrices * ceil(first.rows / _ROWS) / target.processors)
    steps = ceil(first.columns / _KEYS) * (0.5 if launch.is_causal else 1.0)
    wide = 0.6 + 0.4 * max(first.depth, second.columns) / 64
    slow = 1.0 if launch.dtype in ("f16", "bf16") else 8.0
    return rates.softmax_us + blocks * steps * rates.step_us * wide * slow

"""Regions of functions, cut into units and run unit by unit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from mugraph.ir.memory_order import in_order, inverse
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.trace.regions.replay import replay
from mugraph.units.search_units import single_units

from tests.engine.ops.harness import evaluate, record


def meta(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


Choice = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def random_dag(
    rng: random.Random, choices: Sequence[Choice], most: int
) -> Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]:
    """A function of two square values: all the values on the way, each made by a choice of earlier ones, of which the
    first is one of the last four. There are fewer than `most`."""
    plan = [(rng.choice(choices), rng.random(), rng.random()) for _ in range(rng.randrange(4, most))]

    def values(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        pool = [x, y]
        for choice, i, j in plan:
            near = max(0, len(pool) - 4)
            pool.append(choice(pool[near + int(i * (len(pool) - near))], pool[int(j * len(pool))]))
        return pool

    return values


def cut(fn: Callable[..., Any], **inputs: torch.Tensor) -> tuple[Part, ...]:
    return single_units(record(fn, inputs))


def run(region: Region, cut_up: tuple[Part, ...], inputs: dict[str, torch.Tensor]) -> dict[int, torch.Tensor]:
    """The units in order, each from values that are there: units by their programs, the rest by PyTorch, float64."""
    env = {live.value: inputs[live.expression].double() for live in region.live_ins}
    for unit in cut_up:
        if isinstance(unit, PlainCalls):
            env = replay(unit.calls, env)
            continue
        env = replay(unit.views, env)
        assert all(value in env for value in unit.inputs.values())
        results = evaluate(unit.program, {name: env[value].double() for name, value in unit.inputs.items()})
        for name, result in results.items():
            value = unit.outputs[name]
            order = unit.order_of(value)
            laid = result.reshape(in_order(order, region.values[value].shape)).contiguous()
            env[value] = laid.permute(inverse(order))
    return env


def convolved(region: Region) -> list[int]:
    """What its convolutions make."""
    return [value for call in region.calls if canonical(call.target) in WINDOW_DIMS for value in call.outputs]


def to_leave(region: Region) -> list[frozenset[int]]:
    """Its convolutions, as `cut_region` takes what is left to PyTorch."""
    return [frozenset((value,)) for value in convolved(region)]


def agrees(fn: Callable[..., Any], inputs: dict[str, torch.Tensor], **limits: Any) -> tuple[Part, ...]:
    """Cut and run on real tensors; compare every live-out with torch."""
    region = record(fn, inputs)
    cut_up = single_units(region, **limits)
    env = run(region, cut_up, inputs)
    want = fn(**{name: tensor.double() for name, tensor in inputs.items()})
    wants = want if isinstance(want, tuple) else (want,)
    for live, expected in zip(region.live_outs, wants, strict=True):
        torch.testing.assert_close(env[live.value], expected, rtol=1e-4, atol=1e-5, check_dtype=False)
    return cut_up


def units(cut_up: tuple[Part, ...]) -> list[SearchUnit]:
    return [unit for unit in cut_up if isinstance(unit, SearchUnit)]


def rms(x: torch.Tensor) -> torch.Tensor:
    v = x.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

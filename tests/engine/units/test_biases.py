"""Biases of convolutions that PyTorch runs: added by the kernel that follows, or by PyTorch where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.region import Call, PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.regions.replay import replay
from mugraph.units.biases import with_biases_apart, with_biases_back
from mugraph.units.region_units import cut_region

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import agrees

X = {"x": randn(2, 4, 5, 6), "w": randn(4, 6, 3, 3, seed=1), "b": randn(6, seed=2)}
VOLUME = {"x": randn(2, 4, 5, 6, 4), "w": randn(6, 4, 3, 3, 3, seed=1), "b": randn(6, seed=2)}


def up(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w, b, stride=2) * 2)


def by_name(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.conv_transpose2d(input=x, weight=w, bias=b, stride=2) * 2)


def volume(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(F.conv3d(x, w, bias=b)).mean(dim=(2, 3, 4))


def twice(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    first = torch.relu(F.conv3d(x, w, b, padding=1) * 3)
    return torch.relu(F.conv3d(first[:, :4], w, b) * 3)


def unbatched(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x[0], w, b) * 2)


def plain(region: Region) -> list[Call]:
    """What PyTorch runs where every search unit has a kernel."""
    return [call for part in cut_region(region)[1] if isinstance(part, PlainCalls) for call in part.calls]


def convolutions(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if "conv" in canonical(call.target)]


def bias_of(call: Call) -> object:
    return call.args[2] if len(call.args) > 2 else call.kwargs.get("bias")


@pytest.mark.parametrize(
    ("fn", "inputs", "count"),
    [(up, X, 1), (by_name, X, 1), (volume, VOLUME, 1), (twice, VOLUME, 2), (unbatched, X, 1)],
)
def test_the_kernel_that_follows_adds_it(fn: Callable[..., Any], inputs: dict[str, torch.Tensor], count: int) -> None:
    region = record(fn, inputs)
    found = convolutions(plain(region))
    assert [bias_of(call) for call in found] == [None] * count
    bias = next(live.value for live in region.live_ins if live.expression == "b")
    reading = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit) and bias in part.inputs.values()]
    assert len(reading) == count
    whole, _ = cut_region(region)
    assert whole.calls == region.calls, "what PyTorch is measured by is as recorded"


@pytest.mark.parametrize(("fn", "inputs"), [(up, X), (by_name, X), (volume, VOLUME), (twice, VOLUME), (unbatched, X)])
def test_the_calls_compute_the_same(fn: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> None:
    region = record(fn, inputs)
    apart = with_biases_apart(region)
    assert len(apart.calls) > len(region.calls)
    env = {live.value: inputs[live.expression].double() for live in region.live_ins}
    recorded, rewritten = replay(region.calls, env), replay(apart.calls, env)
    for value in (value for call in region.calls for value in call.outputs):
        torch.testing.assert_close(recorded[value], rewritten[value])
        assert recorded[value].shape == rewritten[value].shape
    for value, info in apart.values.items():
        assert tuple(rewritten[value].shape) == info.shape
        assert tuple(rewritten[value].stride()) == info.strides
    agrees(fn, inputs)


def test_where_no_kernel_follows_the_call_is_as_recorded() -> None:
    def ends(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(F.conv_transpose2d(torch.tanh(x * 2), w, b), 1)

    region = record(ends, X)
    _, parts = cut_region(region)
    calls = [part.calls for part in parts if isinstance(part, PlainCalls)]
    assert [bias_of(call) for step in calls for call in convolutions(step)] == [None]
    back = [call for step in with_biases_back(region, calls) for call in step]
    assert back == [
        call for call in region.calls if canonical(call.target) != "torch.tanh" and "mul" not in call.target
    ]


def test_a_unit_without_a_kernel_leaves_the_call_as_recorded() -> None:
    """The sum is among the unit's calls, and the convolution in a step before it."""
    region = record(up, X)
    steps = [part.calls for part in cut_region(region)[1]]
    assert len(steps) > 1
    back = [call for step in with_biases_back(region, steps) for call in step]
    assert [call for call in back if not canonical(call.target).endswith("view")] == list(region.calls)


def test_numbers_are_the_same_in_each_cut() -> None:
    region = record(twice, VOLUME)
    first = with_biases_apart(region)
    assert with_biases_apart(replace(region, values={**first.values})) == first


def test_what_has_a_rule_stays_in_its_unit() -> None:
    def ruled(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.conv2d(x, w.transpose(0, 1), b))

    region = record(ruled, X)
    assert with_biases_apart(region) is region or with_biases_apart(region).calls == region.calls

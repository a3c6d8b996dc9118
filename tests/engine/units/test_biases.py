"""Biases of convolutions that PyTorch runs: added by the kernel that follows, or by PyTorch where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.region import Call, PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.regions.replay import replay
from mugraph.units.biases import with_biases_apart, with_biases_back
from mugraph.units.region_units import cut_region

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import agrees, convolved, run, to_leave

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
    return [
        call for part in cut_region(region, to_leave(region))[1] if isinstance(part, PlainCalls) for call in part.calls
    ]


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
    reading = [
        part
        for part in cut_region(region, to_leave(region))[1]
        if isinstance(part, SearchUnit) and bias in part.inputs.values()
    ]
    assert len(reading) == count
    whole, _ = cut_region(region, to_leave(region))
    assert whole.calls == region.calls, "what PyTorch is measured by is as recorded"


@pytest.mark.parametrize(("fn", "inputs"), [(up, X), (by_name, X), (volume, VOLUME), (twice, VOLUME), (unbatched, X)])
def test_the_calls_compute_the_same(fn: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> None:
    region = record(fn, inputs)
    apart = with_biases_apart(region, convolved(region))
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
        return torch.cumprod(F.conv_transpose2d(torch.tanh(x * 2), w, b), 1)

    region = record(ends, X)
    _, parts = cut_region(region, to_leave(region))
    calls = [part.calls for part in parts if isinstance(part, PlainCalls)]
    assert [bias_of(call) for step in calls for call in convolutions(step)] == [None]
    back = [call for step in with_biases_back(region, calls) for call in step]
    assert back == [
        call for call in region.calls if canonical(call.target) != "torch.tanh" and "mul" not in call.target
    ]


def test_a_unit_without_a_kernel_leaves_the_call_as_recorded() -> None:
    """The sum is among the unit's calls, and the convolution in a step before it."""
    region = record(up, X)
    steps = [part.calls for part in cut_region(region, to_leave(region), turned=())[1]]
    assert len(steps) > 1
    back = [call for step in with_biases_back(region, steps) for call in step]
    assert [call for call in back if not canonical(call.target).endswith("view")] == list(region.calls)


def test_numbers_are_the_same_in_each_cut() -> None:
    region = record(twice, VOLUME)
    first = with_biases_apart(region, convolved(region))
    assert with_biases_apart(replace(region, values={**first.values}), convolved(region)) == first


def test_what_has_a_rule_stays_in_its_unit() -> None:
    def ruled(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.conv2d(x, w.transpose(0, 1), b))

    region = record(ruled, X)
    assert with_biases_apart(region).calls == region.calls


def test_what_is_written_in_place_afterwards_is_written() -> None:
    """It has the number of the sum."""

    def rectified(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.relu(F.conv_transpose2d(x, w, b), inplace=True), 2)

    region = record(rectified, X)
    steps = [part.calls for part in cut_region(region, to_leave(region))[1]]
    assert [call for step in with_biases_back(region, steps) for call in step] == list(region.calls)


def test_what_pytorch_rounds_once_stays() -> None:
    def depthwise(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.conv3d(x, w, b, groups=4) * 2)

    def grouped(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.conv3d(x, w, b, groups=2) * 2)

    region = record(depthwise, {**VOLUME, "w": randn(8, 1, 3, 3, 3), "b": randn(8)})
    assert with_biases_apart(region, convolved(region)).calls == region.calls
    region = record(grouped, {**VOLUME, "w": randn(6, 2, 3, 3, 3)})
    assert with_biases_apart(region, convolved(region)).calls != region.calls


def test_a_bias_of_another_type_stays() -> None:
    """Under autocast: a sum of both types would have the larger one."""
    region = record(up, X)
    half = {live.value: live.expression for live in region.live_ins}
    values = {n: replace(info, dtype="f32" if half.get(n) == "b" else "f16") for n, info in region.values.items()}
    mixed = replace(region, values=values)
    assert with_biases_apart(mixed, convolved(mixed)).calls == mixed.calls


@settings(max_examples=25, deadline=None)
@given(
    rank=st.integers(1, 3),
    transposed=st.booleans(),
    groups=st.sampled_from((1, 2)),
    stride=st.integers(1, 2),
    steps=st.lists(st.sampled_from(("relu", "relu_", "tanh", "scale", "softmax", "mean", "pool", "conv")), max_size=4),
    seed=st.integers(0, 99),
)
def test_chains_compute_the_same(
    rank: int, transposed: bool, groups: int, stride: int, steps: list[str], seed: int
) -> None:
    """With a kernel for every search unit, and with none."""
    conv = getattr(F, f"conv{'_transpose' if transposed else ''}{rank}d")
    pool = getattr(F, f"max_pool{rank}d")
    weight = (4, 4 // groups, *(3, 2, 1)[:rank])
    padding = tuple((size - 1) // 2 if transposed else 2 for size in weight[2:])  # sizes must not end at nothing
    x, w, b = randn(2, 4, *(9, 7, 5)[:rank], seed=seed), randn(*weight, seed=seed + 1), randn(4, seed=seed + 2)
    step_of: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "relu": torch.relu,
        "relu_": lambda y: F.relu(y, inplace=True),
        "tanh": torch.tanh,
        "scale": lambda y: y * 0.7 + 0.1,
        "softmax": lambda y: torch.softmax(y, 1),
        "mean": lambda y: y - y.mean(1, keepdim=True),
        "pool": lambda y: pool(y, 2, stride=1, padding=1),
    }

    def chain(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = conv(x, w, b, stride=stride, groups=groups)
        for step in steps:
            y = step_of[step](y) if step in step_of else conv(y, w, b, padding=padding, groups=groups)
        return y

    inputs = {"x": x, "w": w, "b": b}
    recorded = record(chain, inputs)
    region, parts = cut_region(recorded, to_leave(recorded))
    want = chain(x.double(), w.double(), b.double())
    env = {live.value: inputs[live.expression].double() for live in region.live_ins}
    back = [call for step in with_biases_back(region, [part.calls for part in parts]) for call in step]
    (out,) = [live.value for live in region.live_outs]
    assert torch.equal(replay(back, env)[out], want)
    assert all(bias_of(call) is not None for call in convolutions(back))
    torch.testing.assert_close(run(region, parts, inputs)[out], want, rtol=1e-4, atol=1e-5, check_dtype=False)

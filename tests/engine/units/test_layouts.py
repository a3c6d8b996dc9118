"""Convolutions that PyTorch runs: channels last where kernels read them, in the usual order where calls do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.calls import Call, Symbol, operands
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.regions.replay import replay
from mugraph.units.biases import with_biases_apart, with_biases_back
from mugraph.units.layouts import POSSIBLE, plain_calls, turnable, with_channels_last, with_usual_layouts
from mugraph.units.region_units import cut_region
from mugraph.units.written_last import reading_usual, with_copies, written_by_kernels

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import convolved, run, to_leave

X = {"x": randn(2, 4, 5, 6), "w": randn(4, 6, 3, 3, seed=1), "b": randn(6, seed=2)}
SQUARE = {**X, "w": randn(4, 4, 3, 3, seed=1), "b": randn(4, seed=2)}
VOLUME = {"x": randn(2, 4, 5, 6, 4), "w": randn(6, 4, 3, 3, 3, seed=1), "b": randn(6, seed=2)}


def up(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w, b, stride=2) * 2)


def volume(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(F.conv3d(x, w, bias=b)).mean(dim=(2, 3, 4))


def twice(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    first = torch.relu(F.conv_transpose2d(x, w, b) * 3)
    return torch.relu(F.conv_transpose2d(first, w, b) * 3)


def plain(region: Region, turned: Collection[int] = (2,)) -> list[Call]:
    """What PyTorch runs where every search unit has a kernel."""
    return [
        call
        for part in cut_region(region, to_leave(region), turned)[1]
        if isinstance(part, PlainCalls)
        for call in part.calls
    ]


def turns(calls: list[Call]) -> int:
    return sum("memory_format" in call.kwargs for call in calls)


@pytest.mark.parametrize(("fn", "inputs", "count"), [(up, X, 1), (twice, SQUARE, 2), (volume, VOLUME, 0)])
def test_the_kernel_that_follows_reads_channels_last(
    fn: Callable[..., Any], inputs: dict[str, torch.Tensor], count: int
) -> None:
    region = record(fn, inputs)
    assert turns(plain(region)) == count
    cut, parts = cut_region(region, to_leave(region))
    assert cut.calls == region.calls, "what PyTorch is measured by is as recorded"
    results = [call.outputs[0] for call in plain(region) if "conv" in call.target]
    for part in parts:
        for name, value in part.inputs.items() if isinstance(part, SearchUnit) else ():
            if value in results:
                tensor = next(one for one in part.program.tensors if one.name == name)
                assert (tensor.strides[1] == 1) == bool(count)
    (out,) = [live.value for live in region.live_outs]
    assert cut.values[out] == region.values[out]
    torch.testing.assert_close(run(cut, parts, inputs)[out].float(), fn(**inputs), rtol=1e-4, atol=1e-5)


def test_windows_in_three_dimensions_where_asked_for() -> None:
    region = record(volume, VOLUME)
    (copy,) = [call for call in plain(region, POSSIBLE) if "memory_format" in call.kwargs]
    assert copy.kwargs == {"memory_format": Symbol("torch.channels_last_3d")}
    cut, parts = cut_region(region, to_leave(region), POSSIBLE)
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(run(cut, parts, VOLUME)[out].float(), volume(**VOLUME), rtol=1e-4, atol=1e-5)


def returned(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = F.conv_transpose2d(x, w)
    return y, torch.tanh(y * 2)


def pooled(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = F.conv_transpose2d(x, w)
    return torch.logcumsumexp(y, 1) + torch.tanh(y * 2)


def grouped(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w, groups=2) * 2)


def one_tap(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w[:, :, :1, :1].contiguous()) * 2)


def unbatched(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x[0], w) * 2)


def already(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w, b) * 2).contiguous()


@pytest.mark.parametrize("fn", [returned, pooled, grouped, one_tap, unbatched])
def test_others_stay(fn: Callable[..., Any]) -> None:
    assert turns(plain(record(fn, X))) == 0


def test_what_is_channels_last_already_is_left_alone() -> None:
    inputs = {**X, "x": X["x"].contiguous(memory_format=torch.channels_last)}
    region = record(already, inputs)
    assert turns(plain(region)) == 0
    steps = [part.calls for part in cut_region(region, to_leave(region))[1]]
    assert with_usual_layouts(region, steps) == steps


def test_numbers_and_calls_come_back() -> None:
    """In each cut, with the values of the cut region, whatever stays."""
    region = record(twice, SQUARE)
    cut, parts = cut_region(region, to_leave(region))
    steps = [part.calls for part in parts]
    back = [call for step in with_biases_back(cut, with_usual_layouts(cut, steps)) for call in step]
    assert [call for call in back if not canonical(call.target).endswith("view")] == list(region.calls)


def test_calls_beside_a_kernel_read_the_usual_order() -> None:
    region = record(pooled, X)
    apart = with_biases_apart(region, convolved(region))
    (one,) = turnable(apart, left=convolved(apart))
    turned = with_channels_last(apart, [one])
    (step,) = with_usual_layouts(region, [turned.calls], {one.result})
    env = {live.value: X[live.expression] for live in region.live_ins}
    found = replay(step, env)
    (cumprod,) = [call for call in step if "cumsum" in call.target]
    assert found[one.result].stride(1) == 1
    assert found[operands(cumprod)[0]].is_contiguous()
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(found[out], pooled(**X))
    assert found[out].is_contiguous()


@settings(max_examples=25, deadline=None)
@given(
    rank=st.integers(2, 3),
    transposed=st.booleans(),
    groups=st.sampled_from((1, 2)),
    steps=st.lists(st.sampled_from(("relu", "relu_", "tanh", "scale", "softmax", "mean", "pool", "conv")), max_size=4),
    seed=st.integers(0, 99),
)
def test_chains_compute_the_same(rank: int, transposed: bool, groups: int, steps: list[str], seed: int) -> None:
    """With a kernel for every search unit, and with none."""
    conv = getattr(F, f"conv{'_transpose' if transposed else ''}{rank}d")
    pool = getattr(F, f"max_pool{rank}d")
    weight = (4, 4 // groups, *(3, 2, 1)[:rank])
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
        y = conv(x, w, b, groups=groups)
        for step in steps:
            y = step_of[step](y) if step in step_of else conv(y, w, b, padding=0 if transposed else 2, groups=groups)
        return y

    inputs = {"x": x, "w": w, "b": b}
    recorded = record(chain, inputs)
    region, parts = cut_region(recorded, to_leave(recorded), POSSIBLE)
    want = chain(x.double(), w.double(), b.double())
    env = {live.value: inputs[live.expression].double() for live in region.live_ins}
    steps_of = with_usual_layouts(region, [part.calls for part in parts])
    back = [call for step in with_biases_back(region, steps_of) for call in step]
    (out,) = [live.value for live in region.live_outs]
    assert torch.equal(replay(back, env)[out], want)
    assert turns(back) == 0
    torch.testing.assert_close(run(region, parts, inputs)[out], want, rtol=1e-4, atol=1e-5, check_dtype=False)


def test_a_convolution_with_a_rule_is_left_to_pytorch_where_asked_for() -> None:
    """Then its bias is apart, and its result channels last for the kernel that follows."""

    def least(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.amin(F.conv2d(x, w, b), dim=1))

    inputs = {**X, "w": randn(6, 4, 3, 3, seed=1)}
    region = record(least, inputs)
    (call,) = [call for call in region.calls if "conv" in call.target]
    assert not [call for part in cut_region(region)[1] for call in plain_calls(part) if "conv" in call.target]
    cut, parts = cut_region(region, [frozenset(call.outputs)])
    calls, unit = parts
    assert [canonical(one.target) for one in calls.calls] == ["Tensor.contiguous", canonical(call.target)]
    assert isinstance(unit, SearchUnit)
    assert {live.value for live in region.live_ins if live.expression == "b"} <= {*unit.inputs.values()}
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(run(cut, parts, inputs)[out].float(), least(**inputs), rtol=1e-4, atol=1e-5)
    steps = [part.calls for part in parts]
    back = [one for step in with_biases_back(cut, with_usual_layouts(cut, steps)) for one in step]
    assert [one for one in back if not canonical(one.target).endswith("view")] == list(region.calls)


def test_what_is_left_to_pytorch_joins_nothing() -> None:
    def weighted(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, b, padding=1) * torch.sort(x).values.sum(dim=-1, keepdim=True)

    region = record(weighted, {**SQUARE, "x": randn(2, 4, 6, 6)})
    computed = [part.calls for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
    assert any("conv2d" in call.target for calls in computed for call in calls)
    assert any("conv2d" in call.target for call in plain(region, ()))


def residual(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The first result is read by a kernel as well."""
    first = torch.relu(F.conv_transpose2d(x, w, padding=1) * 3)
    return torch.relu(F.conv_transpose2d(first, w, padding=1) * 2 + first)


def between(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The first result is read by a call as well."""
    first = torch.relu(F.conv_transpose2d(x, w, padding=1) * 3)
    return torch.relu(F.conv_transpose2d(first, w, padding=1) * 2) + torch.logcumsumexp(first, 1)


def leaving(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first = torch.relu(F.conv_transpose2d(x, w, padding=1) * 3)
    return first, torch.relu(F.conv_transpose2d(first, w, padding=1) * 2)


@pytest.mark.parametrize(("fn", "nothing"), [(twice, 1), (residual, 1), (between, 0), (leaving, 0)])
def test_a_kernel_writes_channels_last_for_the_next_convolution(fn: Callable[..., Any], nothing: int) -> None:
    """nothing: how many calls that turn an operand have nothing to copy"""
    region = record(fn, SQUARE)
    cut, parts = cut_region(region, to_leave(region))
    env = run(cut, parts, SQUARE)
    copies = [call for part in parts for call in part.calls if "memory_format" in call.kwargs]
    pairs = [(operands(call)[0], call.outputs[0]) for call in copies]
    assert len(copies) == 2
    assert all(env[copy].stride(1) == 1 for _, copy in pairs)
    assert sum(env[value].data_ptr() == env[copy].data_ptr() for value, copy in pairs) == nothing
    wanted = fn(**SQUARE)
    for live, expected in zip(region.live_outs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert cut.values[live.value] == region.values[live.value]
        torch.testing.assert_close(env[live.value].float(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fn", [twice, residual])
@pytest.mark.parametrize("kernels", [(True, True), (True, False), (False, True), (False, False)])
def test_units_without_a_kernel_read_the_usual_order(fn: Callable[..., Any], kernels: tuple[bool, bool]) -> None:
    """The first search unit makes what the second convolution reads; the second one reads what that makes."""
    region = record(fn, SQUARE)
    cut, parts = cut_region(region, to_leave(region))
    units = [part for part in parts if isinstance(part, SearchUnit)]
    assert len(units) == len(kernels)
    kept = [unit for unit, has in zip(units, kernels, strict=True) if has]
    by_kernels = {value for unit in kept for value in unit.inputs.values()}
    steps = [part.calls for part in parts if part not in kept]
    back = with_biases_back(cut, with_usual_layouts(cut, steps, by_kernels))
    left = iter(reading_usual(cut, back, written_by_kernels(cut, steps)))
    plan = [part if part in kept else PlainCalls(next(left)) for part in parts]
    env = run(cut, tuple(plan), SQUARE)
    left = [part.calls for part in plan if isinstance(part, PlainCalls)]
    made = {value for step in left for call in step for value in call.outputs}
    assert made <= with_copies(cut, left).values.keys()
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(env[out].float(), fn(**SQUARE), rtol=1e-4, atol=1e-5)
    assert env[out].is_contiguous()

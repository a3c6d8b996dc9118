"""A whole region channels last: the same results, in the order that was recorded, and nothing turned in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.calls import Call, Ref, Symbol, TensorInfo, operands
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.solve.divisions import left_to_pytorch
from mugraph.trace.regions.replay import replay
from mugraph.units.biases import with_biases_back
from mugraph.units.layouts import WHOLE
from mugraph.units.lying import Lying, lies_last, same_places
from mugraph.units.region_units import cut_region
from mugraph.units.whole_last import as_the_code_has, channels_last, copies, is_windowed
from torch.overrides import TorchFunctionMode

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import run

Function = Callable[..., Any]
Tensors = dict[str, torch.Tensor]


class AsOnAGpu(TorchFunctionMode):
    """Convolutions leave images as cuDNN does: channels last where the operand or the weight lies so."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.__name__ in ("conv2d", "conv_transpose2d") and result.dim() == 4:
            last = any(lies_last(TensorInfo(tuple(one.shape), tuple(one.stride()), "f32")) for one in args[:2])
            return result.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
        return result


def weights(*shapes: tuple[int, ...]) -> Tensors:
    return {f"w{number}": randn(*shape, seed=number + 1) for number, shape in enumerate(shapes)}


def inception(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor) -> torch.Tensor:
    first = F.max_pool2d(torch.relu(F.conv2d(x, w0, padding=1)), 2)
    parts = [F.conv2d(first, w1), F.conv2d(first, w2, padding=1)]
    parts.append(F.conv2d(F.max_pool2d(first, 3, stride=1, padding=1), w1))
    return F.adaptive_avg_pool2d(torch.relu(F.conv2d(torch.cat(parts, 1), w3, padding=1)), (1, 1)).flatten(1)


INCEPTION = {"x": randn(2, 3, 12, 12), **weights((6, 3, 3, 3), (4, 6, 1, 1), (8, 6, 3, 3), (6, 16, 3, 3))}


def residual(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    """Down-sampled by a convolution of one tap; what leaves is an image."""
    first = F.relu(F.conv2d(x, w0, stride=2, padding=1))
    return F.relu(F.conv2d(first, w1, padding=1) + F.conv2d(x, w2, stride=2))


RESIDUAL = {"x": randn(2, 4, 8, 8), **weights((6, 4, 3, 3), (6, 6, 3, 3), (6, 4, 1, 1))}


def separable(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    first = F.relu6(F.conv2d(x, w0, padding=1))
    return F.relu6(F.conv2d(F.relu6(F.conv2d(first, w1, padding=1, groups=6)), w2)).mean((2, 3))


SEPARABLE = {"x": randn(2, 3, 8, 8), **weights((6, 3, 3, 3), (6, 1, 3, 3), (8, 6, 1, 1))}


def unet(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor) -> torch.Tensor:
    down = torch.softmax(F.conv2d(x, w0, padding=1), -1)
    deep = torch.relu(F.conv2d(F.max_pool2d(down, 2), w1, padding=1))
    up = F.conv_transpose2d(deep, w2, stride=2)
    return F.conv2d(torch.cat([up, down], 1), w3, padding=1)


UNET = {"x": randn(2, 3, 8, 8), **weights((6, 3, 3, 3), (8, 6, 3, 3), (8, 4, 2, 2), (2, 10, 3, 3))}


def viewed(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    """A `view` of an image as rows needs the usual order."""
    deep = F.conv2d(torch.relu(F.conv2d(x, w0)), w1)
    return deep.view(deep.shape[0], -1) @ w2


VIEWED = {"x": randn(2, 3, 7, 7), **weights((4, 3, 3, 3), (4, 4, 3, 3), (36, 5))}


def pooled(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    """Of a tensor of single places the strides are seen as well."""
    return F.adaptive_avg_pool2d(F.conv2d(torch.relu(F.conv2d(x, w0)), w1), (1, 1))


def one_channel(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor) -> torch.Tensor:
    """PyTorch does not take an image of one channel for channels last: the result of the first is turned."""
    return torch.relu(F.conv2d(torch.relu(F.conv2d(x, w0) * 2), w1) * 3)


ONE_CHANNEL = {"x": randn(2, 1, 8, 8), **weights((6, 1, 3, 3), (6, 6, 3, 3))}


def dense(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    first = F.conv2d(F.relu(F.batch_norm(x, g, g.abs() + 1, g, g)), w0, padding=1)
    both = torch.cat([x, first], 1)
    return torch.cat([both, F.conv2d(both, w1, padding=1)], 1)


DENSE = {"x": randn(2, 4, 6, 6), **weights((4, 4, 3, 3), (4, 8, 3, 3)), "g": randn(4, seed=9)}
CASES: list[tuple[Function, Tensors, int]] = [
    (inception, INCEPTION, 1), (residual, RESIDUAL, 2), (separable, SEPARABLE, 1), (unet, UNET, 3),
    (viewed, VIEWED, 2), (pooled, VIEWED, 1), (one_channel, ONE_CHANNEL, 2), (dense, DENSE, 2),
]  # fmt: skip
"""With the copies that are made: of what enters, of what leaves, and where PyTorch does not keep the order."""


@pytest.mark.parametrize(("fn", "inputs", "count"), CASES)
def test_only_what_enters_and_what_leaves_is_turned(fn: Function, inputs: Tensors, count: int) -> None:
    region = record(fn, inputs)
    whole = channels_last(region)
    assert whole is not None
    assert whole.relaid is not None
    made = whole.as_made.calls
    assert len(copies(whole, made)) == count
    for call in made:
        operand = whole.values[operands(call)[0]]
        assert not is_windowed(call) or lies_last(operand) or operand.shape[1] == 1
    assert as_the_code_has(whole, made) == list(region.calls)
    assert_same(region, whole, fn, inputs)


@pytest.mark.parametrize(("fn", "inputs", "count"), CASES)
@pytest.mark.parametrize("left", [False, True])
def test_with_kernels_and_without(fn: Function, inputs: Tensors, count: int, left: bool) -> None:
    """left: its convolutions are left to PyTorch"""
    region = record(fn, inputs)
    assert_plans_compute_the_same(region, fn, inputs, left, random.Random(count))


def assert_same(region: Region, whole: Region, fn: Function, inputs: Tensors) -> None:
    """Calls as they are made give what the code gives, each value lies as it is said to."""
    with AsOnAGpu():
        env = replay(whole.as_made.calls, {live.value: inputs[live.expression] for live in region.live_ins})
    for call in whole.as_made.calls:
        assert_lies(env, call.outputs, whole.values)
    assert_returns(env, region, fn, inputs, exactly=True)


def assert_lies(env: Mapping[int, torch.Tensor], numbers: Collection[int], values: Mapping[int, TensorInfo]) -> None:
    for number in numbers:
        lying = TensorInfo(tuple(env[number].shape), tuple(env[number].stride()), "")
        assert same_places(lying, values[number]), (number, lying, values[number])


def assert_returns(
    env: Mapping[int, torch.Tensor], region: Region, fn: Function, inputs: Tensors, *, exactly: bool = False
) -> None:
    """exactly: also the strides of dimensions of size 1, which address nothing"""
    with AsOnAGpu():
        wanted = fn(**inputs)
    for live, expected in zip(region.live_outs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(env[live.value].float(), expected, rtol=1e-3, atol=1e-4)
        assert_lies(env, [live.value], {live.value: TensorInfo(tuple(expected.shape), expected.stride(), "")})
        if exactly:
            assert env[live.value].stride() == expected.stride()


def cut_of(region: Region, left: bool) -> tuple[Region, tuple[Part, ...]]:
    cut, parts = cut_region(region, (), WHOLE)
    units = [part for part in parts if isinstance(part, SearchUnit)]
    refused = [frozenset(call.outputs) for unit in units for call in left_to_pytorch(unit)]
    return cut_region(region, refused, WHOLE) if left else (cut, parts)


def assert_plans_compute_the_same(
    region: Region, fn: Function, inputs: Tensors, left: bool, chance: random.Random
) -> None:
    """With a kernel for every unit, for none, and for some of them."""
    cut, parts = cut_of(region, left)
    assert cut.calls == region.calls, "what PyTorch is measured by is as recorded"
    assert all(cut.values[value] == info for value, info in region.values.items())
    units = [part for part in parts if isinstance(part, SearchUnit)]
    for kept in (units, [], [unit for unit in units if chance.random() < 0.5]):
        plain = with_biases_back(cut.as_made, [part.calls for part in parts if part not in kept])
        steps = iter(plain)
        plan = [part if part in kept else PlainCalls(next(steps)) for part in parts]
        with AsOnAGpu():
            env = run(cut, tuple(plan), inputs)
        for part in plan:
            made = part.outputs.values() if isinstance(part, SearchUnit) else _made(part.calls)
            assert_lies(env, made, cut.values)
            for name, value in part.inputs.items() if isinstance(part, SearchUnit) else ():
                tensor = next(one for one in part.program.tensors if one.name == name)
                shape = tensor.shape(part.program.sizes)
                if shape == tuple(env[value].shape):
                    read = TensorInfo(shape, tensor.strides, "")
                    assert_lies(env, [value], {value: read})
        assert_returns(env, region, fn, inputs)
    written = as_the_code_has(cut, with_biases_back(cut.as_made, [[c for part in parts for c in part.calls]])[0])
    assert [call for call in written if call in region.calls] == written


def _made(calls: Sequence[Call]) -> list[int]:
    return [value for call in calls for value in call.outputs]


def pointless(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor) -> torch.Tensor:
    """One convolution alone."""
    return torch.relu(F.conv2d(x, w0) * 2) + 1


def written(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor) -> torch.Tensor:
    """Written to in place, where others see it."""
    x.mul_(2)
    return F.conv2d(F.conv2d(x, w0), w1)


def strided(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor) -> torch.Tensor:
    first = F.conv2d(x, w0)
    return F.conv2d(torch.as_strided(first, first.shape, first.stride()), w1)


def transposed(x: torch.Tensor, w0: torch.Tensor, w1: torch.Tensor) -> torch.Tensor:
    """It leaves the region in an order of its own."""
    return F.conv2d(F.conv2d(x, w0), w1).transpose(2, 3)


@pytest.mark.parametrize("fn", [pointless, written, strided, transposed])
def test_others_stay_as_they_are(fn: Function) -> None:
    inputs = {"x": randn(2, 4, 8, 8), **weights((4, 4, 3, 3), (4, 4, 3, 3))}
    region = record(fn, inputs)
    assert channels_last(region) is None
    cut, parts = cut_region(region, (), WHOLE)
    assert cut.relaid is None
    assert [part.calls for part in parts] == [part.calls for part in cut_region(region, (), ())[1]]


def test_what_the_code_has_channels_last_already_stays() -> None:
    inputs = {**RESIDUAL, "x": RESIDUAL["x"].contiguous(memory_format=torch.channels_last)}
    with AsOnAGpu():
        region = record(residual, inputs)
    assert channels_last(region) is None


def test_a_copy_is_known_by_how_its_values_lie() -> None:
    lying = Lying({0: TensorInfo((2, 4, 3, 3), (36, 9, 3, 1), "f32")})
    region = record(residual, RESIDUAL)
    whole = channels_last(region)
    assert whole is not None
    first = next(call for call in copies(whole, whole.as_made.calls) if call.kwargs)
    assert first.kwargs == {"memory_format": Symbol("torch.channels_last")}
    (info,) = lying.after(Call(first.target, (Ref(0),), first.kwargs, (1,), first.range))
    assert info.strides == (36, 1, 12, 4)


STEPS = ("conv", "conv", "one", "groups", "up", "pool", "average", "cat", "norm", "relu", "relu_", "add", "gate",
         "double", "soft", "lower", "shuffle", "copy")  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=9),
    end=st.sampled_from(("image", "rows", "mean", "both", "wide")),
    channels=st.sampled_from((1, 4)),
    left=st.booleans(),
    seed=st.integers(0, 99),
)
def test_networks_compute_the_same(steps: list[str], end: str, channels: int, left: bool, seed: int) -> None:
    chance = random.Random(seed)
    others = [chance.random() for _ in steps]

    def network(x: torch.Tensor, **given: torch.Tensor) -> Any:
        pool = [F.conv2d(x, given["first"], given["b"], padding=1)]
        for step, place in zip(steps, others, strict=True):
            pool.append(_step(step, pool[-1], pool[int(place * len(pool))], given))
        y = pool[-1]
        match end:
            case "rows":
                return F.adaptive_avg_pool2d(y, (1, 1)).view(y.shape[0], -1) * 2
            case "wide":
                return y.reshape(y.shape[0], -1) + 1
            case "mean":
                return y.mean((2, 3))
            case "both":
                return y, F.relu(pool[0])
            case _:
                return y

    inputs = {"x": randn(2, channels, 8, 8, seed=seed), "first": randn(4, channels, 3, 3, seed=1), **GIVEN}
    region = record(network, inputs)
    whole = channels_last(region)
    if whole is None:
        assert not any(lies_last(region.values[operands(call)[0]]) for call in region.calls if is_windowed(call))
        return
    assert_same(region, whole, network, inputs)
    assert_plans_compute_the_same(region, network, inputs, left, chance)


GIVEN = {
    "w": randn(4, 4, 3, 3, seed=2), "one": randn(4, 4, 1, 1, seed=3), "groups": randn(4, 2, 3, 3, seed=4),
    "up": randn(4, 4, 3, 3, seed=5), "b": randn(4, seed=6), "wide": randn(4, 8, 1, 1, seed=7),
    "var": randn(4, seed=8).abs() + 1,
}  # fmt: skip
_STEP: dict[str, Callable[[torch.Tensor, torch.Tensor, Tensors], torch.Tensor]] = {
    "conv": lambda y, other, given: F.conv2d(y, given["w"], given["b"], padding=1) * 0.3,
    "one": lambda y, other, given: F.conv2d(y, given["one"], given["b"]) * 0.5,
    "groups": lambda y, other, given: F.conv2d(y, given["groups"], padding=1, groups=2) * 0.3,
    "up": lambda y, other, given: F.conv_transpose2d(y, given["up"], given["b"], padding=1) * 0.3,
    "pool": lambda y, other, given: F.max_pool2d(y, 3, stride=1, padding=1),
    "average": lambda y, other, given: F.avg_pool2d(y, 3, stride=1, padding=1),
    "cat": lambda y, other, given: F.conv2d(torch.cat([y, other], 1), given["wide"]) * 0.5,
    "norm": lambda y, other, given: F.batch_norm(y, given["b"], given["var"], given["b"], given["b"]),
    "relu": lambda y, other, given: F.relu(y),
    "relu_": lambda y, other, given: F.relu(y * 1.5, inplace=True),
    "add": lambda y, other, given: y + other,
    "gate": lambda y, other, given: y * torch.sigmoid(F.conv2d(F.adaptive_avg_pool2d(y, 1), given["one"])),
    "double": lambda y, other, given: F.max_pool2d(F.interpolate(y, scale_factor=2, mode="bilinear"), 2),
    "soft": lambda y, other, given: torch.softmax(y, 1),
    "lower": lambda y, other, given: torch.logcumsumexp(y, 1),
    "shuffle": lambda y, other, given: y.view(2, 2, 2, 8, 8).transpose(1, 2).contiguous().view(2, 4, 8, 8),
    "copy": lambda y, other, given: y.contiguous(),
}


def _step(step: str, y: torch.Tensor, other: torch.Tensor, given: Tensors) -> torch.Tensor:
    return _STEP[step](y, other, given)

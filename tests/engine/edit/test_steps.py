"""Regions of several steps that are written anew without the views that only kernels read. Triton's compiler and the
driver are stood in for, as in test_prepared."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tests.support.driver import Device, Kernel, Places, device_of, kernel_module

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def twice_kernel(x_ptr, out_ptr, N: tl.constexpr):
    pass


@triton.jit
def turned_kernel(first_ptr, second_ptr, angle_ptr, sum_ptr, difference_ptr, N: tl.constexpr):
    pass


@triton.jit
def joined_kernel(sum_ptr, product_ptr, out_ptr, N: tl.constexpr):
    pass


def launch_twice(x):
    out = torch.empty((2, 8), device=x.device, dtype=torch.float32)
    twice_kernel[(2,)](
        x, out,
        N=8, num_warps=4, num_stages=2,
    )
    return out


def launch_turned(first, second, angle):
    total = torch.empty((2, 4), device=first.device, dtype=torch.float32)
    difference = torch.empty((2, 4), device=first.device, dtype=torch.float32)
    turned_kernel[(2,)](
        first, second, angle, total, difference,
        N=4, num_warps=4, num_stages=2,
    )
    return total, difference


def launch_joined(total, weight):
    product = torch.empty((2, 4), device=total.device, dtype=torch.float32)
    out = torch.empty((2, 4), device=total.device, dtype=torch.float32)
    torch.mm(total, weight, out=product)
    joined_kernel[(2,)](
        total, product, out,
        N=4, num_warps=4, num_stages=2,
    )
    return out


def _turning_on_tensors(x: torch.Tensor, weight: torch.Tensor, table: torch.Tensor, square: torch.Tensor):
    '''Where kernels fit.'''
    y = _twice(x)
    value = torch.mm(y, weight).view(2, 2, 4)
    del y
    first = value[:, 0]
    second = value[:, 1]
    del value
    angle = table[:, 4:]
    total, difference = _turned(_laid_out(first, (8, 1)), _laid_out(second, (8, 1)), angle)
    del first, second
    turned = difference.transpose(0, 1)
    del difference
    other = torch.mul(turned, 3.0)
    del turned
    joined = _joined(total, square)
    return joined, other


def _only_on_tensors(x: torch.Tensor):
    '''Where kernels fit.'''
    first, second = x.chunk(2, dim=1)
    return _turned(first, second, first)


def _stored_on_tensors(x: torch.Tensor, kept: torch.Tensor):
    '''Where kernels fit.'''
    first = x[:, :4]
    kept[:, 4:] = first
    second = kept[:, 4:]
    return _turned(first, second, second)


def _copied_on_tensors(x: torch.Tensor):
    '''Where kernels fit.'''
    first = x.T.reshape(2, 8)[:, :4]
    second = x[:, 4:]
    return _turned(first, second, second)


def _counted_on_tensors(x: torch.Tensor):
    '''Where kernels fit.'''
    first = x[:, :4]
    x += 1
    return _turned(first, first, first)


def _rebound_on_tensors(x: torch.Tensor):
    '''Where kernels fit.'''
    y = _twice(x)
    part = y[:, 4:]
    y = torch.mul(y, 0.5)
    other = y[:, :4]
    return _turned(part, other, other)

"""
REGIONS = "turning", "only", "stored", "rebound"


def rows(place: int, stride: int) -> list[Any]:
    return [(ctypes.c_float * 4).from_address(place + 4 * stride * row) for row in range(2)]


def twice(places: Places) -> None:
    x, out = (rows(one, 8) for one in places)
    for row in range(2):
        for at, (mine, others) in enumerate(((out[row], x[row]), (_behind(out[row]), _behind(x[row])))):
            mine[:] = [2 * one + at for one in others]


def _behind(row: Any) -> Any:
    return (ctypes.c_float * 4).from_address(ctypes.addressof(row) + 16)


def turned(places: Places) -> None:
    first, second, angle, total, difference = (
        rows(one, stride) for one, stride in zip(places, (8, 8, 8, 4, 4), strict=True)
    )
    for row in range(2):
        three = list(zip(first[row], second[row], angle[row], strict=True))
        total[row][:] = [one * by + other for one, other, by in three]
        difference[row][:] = [one - other * by for one, other, by in three]


def joined(places: Places) -> None:
    total, product, out = (rows(one, 4) for one in places)
    for row in range(2):
        out[row][:] = [one - other for one, other in zip(total[row], product[row], strict=True)]


KERNELS = {
    "twice_kernel": Kernel(70, 2, twice),
    "turned_kernel": Kernel(71, 5, turned),
    "joined_kernel": Kernel(72, 3, joined),
}
FOUR = "x.new_empty(2, 4)"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    operators = [
        '_twice = _operator("mugraph_steps::twice", "launch_twice", lambda x: x.new_empty(2, 8))',
        f'_turned = _operator("mugraph_steps::turned", "launch_turned", lambda x, y, z: ({FOUR}, {FOUR}), results=2)',
        f'_joined = _operator("mugraph_steps::joined", "launch_joined", lambda x, y: {FOUR})',
    ]
    with kernel_module(tmp_path_factory.mktemp("steps"), "steps_without_a_gpu", TEXT, operators) as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    found = device_of(module, KERNELS, monkeypatch)
    for region in (*REGIONS, "copied", "counted"):
        monkeypatch.setattr(module, f"_{region}_run", module._run_of(region), raising=False)
    return found


def given(region: str) -> tuple[torch.Tensor, ...]:
    x = torch.arange(16.0).view(2, 8) - 5
    if region == "turning":
        return x, torch.arange(64.0).view(8, 8) / 16, torch.arange(16.0).view(2, 8), torch.ones(4, 4)
    return (x, torch.zeros(2, 8)) if region == "stored" else (x,)


def same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def called(module: ModuleType, region: str) -> list[Any]:
    """Results of five calls, which are those of the function as it is written."""
    found: list[Any] = []
    for _ in range(5):
        found.append(getattr(module, f"_{region}_run")(*given(region)))
        assert same(found[-1], getattr(module, f"_{region}_on_tensors")(*given(region)))
    return found


def is_anew(module: ModuleType, region: str) -> bool:
    run = getattr(module, f"_{region}_run")
    assert run is getattr(module, f"_{region}_on_tensors") or run.__name__ == f"_{region}_on_tensors"
    return run is not getattr(module, f"_{region}_on_tensors")


@pytest.mark.parametrize("region", REGIONS)
def test_it_computes_what_is_written(region, module, device) -> None:
    called(module, region)
    assert is_anew(module, region)
    ordinary = len(device.ordinary)
    called(module, region)
    assert len(device.ordinary) == ordinary


def test_what_is_copied_is_no_part(module, device) -> None:
    called(module, "copied")
    assert not is_anew(module, "copied")


def test_a_line_of_another_kind_is_run_as_written(module, device) -> None:
    called(module, "counted")
    assert not is_anew(module, "counted")


def views_made(module: ModuleType, region: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that make views which a call calls."""
    seen: list[str] = []
    tensors = given(region)
    for name in ("view", "__getitem__", "chunk", "transpose"):
        usual = getattr(torch.Tensor, name)

        def noted(*args: Any, usual: Callable[..., Any] = usual, name: str = name, **named: Any) -> Any:
            seen.append(name)
            return usual(*args, **named)

        monkeypatch.setattr(torch.Tensor, name, noted)
    getattr(module, f"_{region}_run")(*tensors)
    monkeypatch.undo()
    return seen


def test_what_views_are_of_is_let_go_with_the_last_of_them(module, device, monkeypatch) -> None:
    called(module, "turning")
    made: list[StorageWeakRef] = []
    gone: list[bool] = []
    product, times = torch.mm, torch.mul

    def noted(*given: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        result = product(*given, **named)
        made.append(StorageWeakRef(result.untyped_storage()))
        return result

    def asked(*given: Any) -> torch.Tensor:
        gone.extend(one.expired() for one in made)
        return times(*given)

    monkeypatch.setattr(torch, "mm", noted)
    monkeypatch.setattr(torch, "mul", asked)
    assert is_anew(module, "turning")
    module._turning_run(*given("turning"))
    assert gone == [True]


@pytest.mark.parametrize(
    ("region", "views"),
    [("turning", ["transpose"]), ("only", []), ("stored", ["__getitem__"]), ("rebound", ["__getitem__"] * 2)],
)
def test_views_that_kernels_alone_read_are_not_made(region, views, module, device, monkeypatch) -> None:
    called(module, region)
    with pytest.MonkeyPatch.context() as patch:
        assert views_made(module, region, patch) == views


def test_kernels_are_told_the_memory_behind(module, device) -> None:
    called(module, "turning")
    device.native.clear()
    x, weight, table, square = given("turning")
    module._turning_run(x, weight, table, square)
    turning = next(one for one in device.native if one[0] == 71)
    first, second, angle = turning[9][:3]
    assert (second - first, angle) == (16, table.data_ptr() + 16)


@pytest.mark.parametrize("wrong", ["offset", "base", "order", "result"])
def test_what_has_other_bits_is_not_taken(wrong, module, device, monkeypatch) -> None:
    usual, mutated = module._Given, list[int]()

    def places(of: dict[str, tuple[int, int]], lies: Any) -> Any:
        if any(lies):  # of the parts of a product
            mutated.append(1)
            first, second, angle = of.values()
            if wrong == "offset":
                second = (second[0], 0)
            elif wrong == "base":
                angle = (0, angle[1])
            elif wrong == "order":
                first, second = second, first
            elif wrong == "result":
                monkeypatch.setattr(module, "_same_bits", lambda one, other: False)
            of = dict(zip(of, (first, second, angle), strict=True))
        return usual(of, lies)

    monkeypatch.setattr(module, "_Given", places)
    called(module, "turning")
    assert mutated == [1]
    assert not is_anew(module, "turning")


def test_what_lies_in_another_way_is_done_as_written(module, device, monkeypatch) -> None:
    """A product whose strides are others: the view is made, and copied where the kernel wants it so."""
    called(module, "turning")
    usual, ordinary = torch.mm, len(device.ordinary)

    def other(one: torch.Tensor, two: torch.Tensor, **named: Any) -> torch.Tensor:
        return usual(one, two, **named) if named else usual(one, two).new_zeros(2, 16)[:, ::2].copy_(usual(one, two))

    monkeypatch.setattr(torch, "mm", other)
    called(module, "turning")
    assert len(device.ordinary) == ordinary  # what is copied is launched as it was


@pytest.mark.parametrize("other", ["device", "mode", "place", "misaligned"])
def test_it_is_done_as_written_where_anything_is_other(other, module, device, monkeypatch) -> None:
    called(module, "only")
    run, asked = module._only_run, list[int]()
    usual = run.__defaults__

    def as_written(*tensors: torch.Tensor) -> Any:
        asked.append(1)
        return module._only_on_tensors(*tensors)

    run.__defaults__ = (as_written, *usual[1:])
    x = given("only")[0]
    if other == "device":
        run.__defaults__ = (as_written, lambda tensor: 1, *usual[2:])
    elif other == "mode":
        run.__defaults__ = (as_written, *usual[1:3], lambda: 1, *usual[4:])
    elif other == "place":
        device.current = 1
        monkeypatch.setattr(torch.cuda, "device_of", lambda tensor: torch.no_grad())
    else:
        x = torch.cat([torch.zeros(1), x.reshape(-1)])[1:].view(2, 8)
    ordinary = len(device.ordinary)
    assert same(run(x), module._only_on_tensors(given("only")[0]))
    assert bool(asked) == (other in ("device", "mode"))
    assert len(device.ordinary) > ordinary or asked


def test_it_waits_until_launches_are_prepared(module, device, monkeypatch) -> None:
    monkeypatch.setattr(module, "_capturing", lambda: True)
    called(module, "turning")
    assert module._turning_run.__name__ == "run"
    monkeypatch.setattr(module, "_capturing", lambda: False)
    called(module, "turning")
    assert is_anew(module, "turning")


def test_it_is_written_anew_only_of_the_text_that_runs(module, device, monkeypatch) -> None:
    monkeypatch.setattr(module._only_on_tensors, "__code__", module._rebound_on_tensors.__code__)
    called(module, "only")
    assert not is_anew(module, "only")

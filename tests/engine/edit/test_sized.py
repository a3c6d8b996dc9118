"""Launches of sizes that vary, prepared: one way through a launcher's choices at a time. Triton's compiler and the
driver are stood in for, as in test_prepared."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.support.driver import Device, Kernel, Places, device_of, kernel_module

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["M"])
def small_kernel(x_ptr, out_ptr, M, TILE: tl.constexpr):
    pass


@triton.jit(do_not_specialize=["M", "PARTS"])
def parts_kernel(x_ptr, parts_ptr, spare_ptr, M, PARTS, TILE: tl.constexpr):
    pass


@triton.jit(do_not_specialize=["M", "PARTS"])
def joined_kernel(parts_ptr, turned_ptr, out_ptr, M, PARTS):
    pass


@triton.jit
def fixed_kernel(x_ptr, out_ptr, M, TILE: tl.constexpr):
    pass


def launch_rows(x, y):
    m = x.numel() // 4
    if m <= 2:
        out = torch.empty((m, 4), device=x.device, dtype=torch.float32)
        small_kernel[(m, 1, 1)](
            x, out, m,
            TILE=4, num_warps=1, num_stages=1,
        )
        return out
    if m <= 8:
        length = 2
    else:
        length = 4
    parts_of = triton.cdiv(m, length)
    parts = torch.empty((parts_of, length * 4), device=x.device, dtype=torch.float32)
    spare = torch.empty((m, 17), device=x.device, dtype=torch.float32)
    if m <= 5:
        grid = (parts_of, 1, 1)
        schedule = dict(TILE=16, num_warps=4, num_stages=3)
    else:
        grid = (triton.cdiv(m, length), 1, 1)
        schedule = dict(TILE=32, num_warps=8, num_stages=3)
    parts_kernel[grid](
        x, parts, spare, m, parts_of,
        **schedule,
    )
    turned = torch.mul(y, 2.0)
    out = torch.empty((m, 4), device=x.device, dtype=torch.float32)
    joined_kernel[(parts_of, 2, 1)](
        parts, turned, out, m, parts_of,
        num_warps=4, num_stages=2,
    )
    del parts
    return out


def launch_fixed(x):
    m = x.numel() // 4
    out = torch.empty((m, 4), device=x.device, dtype=torch.float32)
    fixed_kernel[(m, 1, 1)](
        x, out, m,
        TILE=4, num_warps=1, num_stages=1,
    )
    return out

"""


def floats(place: int, count: int) -> Any:
    return (ctypes.c_float * count).from_address(place)


def small(places: Places) -> None:
    x, out, m = places
    floats(out, 4 * m)[:] = [one + 1 for one in floats(x, 4 * m)]


def parts(places: Places) -> None:
    x, into, spare, m, count = places
    assert count in (-(-m // 2), -(-m // 4))
    floats(spare, 17 * m)[:] = [-1.0] * 17 * m
    floats(into, 4 * m)[:] = floats(x, 4 * m)


def joined(places: Places) -> None:
    own, turned, out, m, count = places
    assert count in (-(-m // 2), -(-m // 4))
    floats(out, 4 * m)[:] = [one + 1 + floats(turned, 1)[0] - 2 for one in floats(own, 4 * m)]


KERNELS = {
    "small_kernel": Kernel(80, 2, small),
    "parts_kernel": Kernel(81, 3, parts),
    "joined_kernel": Kernel(82, 3, joined),
    "fixed_kernel": Kernel(83, 2, small),
}
OPERATORS = [
    '_rows = _operator("sized_without_a_gpu::rows", "launch_rows", lambda x, y: x.new_empty(x.shape), varies=True)',
    '_fixed = _operator("sized_without_a_gpu::fixed", "launch_fixed", lambda x: x.new_empty(x.shape), varies=True)',
]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with kernel_module(tmp_path_factory.mktemp("sized"), "sized_without_a_gpu", TEXT, OPERATORS) as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    monkeypatch.setattr(module, "_make_native", lambda: False)
    return device_of(module, KERNELS, monkeypatch)


def right(module: ModuleType, m: int) -> None:
    x, y = torch.arange(4.0 * m).view(m, 4), torch.ones(3)
    assert torch.equal(module._rows(x, y), x + 1)


def test_a_way_is_prepared_once_for_all_sizes_that_take_it(module, device) -> None:
    right(module, 6)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]
    assert [call[:7] for call in device.calls] == [  # tried at once
        (81, 3, 1, 1, 4, 512, "OOOiiOO"),
        (82, 3, 2, 1, 4, 512, "OOOiiOO"),
    ]
    for m in (6, 6, 7, 8):
        right(module, m)
    assert len(device.ordinary) == 2
    assert [call[1:4] for call in device.calls[-4:]] == [(4, 1, 1), (4, 2, 1)] * 2
    assert [call[7][-4:] for call in device.calls[-4::2]] == [(7, 4, None, None), (8, 4, None, None)]


def test_each_way_has_its_own(module, device) -> None:
    every = (1, 3, 6, 9)  # up to 2, up to 5, up to 8, above
    for m in every:
        right(module, m)
    ways = "m <= 2", "m > 2 and m <= 8 and m <= 5", "m > 2 and m <= 8 and m > 5", "m > 2 and m > 8 and m > 5"
    assert [one for _, one in module._rows.ways] == [*ways]
    ordinary = len(device.ordinary)
    for m in range(1, 40):
        right(module, m)
    assert len(device.ordinary) == ordinary
    assert len(module._rows.ways) == len(every)


def test_memory_has_the_size_of_the_call(module, device) -> None:
    right(module, 6)
    for m, scratch in ((7, 256 + 512), (8, 256 + 768)):
        device.made.clear()
        right(module, m)
        assert device.made == [((scratch,), (1,), torch.uint8), ((m, 4), (4, 1), torch.float32)]
    _, into, spare, *_ = device.calls[-2][7]
    assert spare == into + 256


def test_schedules_with_one_grid_are_told_apart(module, device) -> None:
    """5 rows and 6 rows are three parts of two, with other tiles."""
    for m in (5, 6, 5, 6):
        right(module, m)
    assert len(module._rows.ways) == 2
    assert len(device.ordinary) == 2 * 2


def test_what_cannot_be_prepared_is_looked_at_a_few_times(module, device, monkeypatch) -> None:
    looked: list[int] = []
    through = module._way_through
    monkeypatch.setattr(module, "_way_through", lambda *given: looked.append(1) or through(*given))
    for m in [*range(1, 50)] * 2:
        x = torch.arange(4.0 * m).view(m, 4)
        assert torch.equal(module._fixed(x), x + 1)
    assert 0 < len(looked) <= module._WAYS


@pytest.mark.parametrize("other", ["misaligned", "device", "hook", "odd hook", "run", "own hook"])
def test_what_is_other_than_it_was_is_launched_as_before(other, module, device, monkeypatch) -> None:
    for m in (1, 5):
        right(module, m)
    device.ordinary.clear()
    told, x, y = len(device.calls), torch.arange(20.0).view(5, 4), torch.ones(3)
    if other == "misaligned":
        x = torch.arange(-1.0, 20.0)[1:].view(5, 4)
    else:
        device.disturb(other, module.joined_kernel, monkeypatch)
    assert torch.equal(module._rows(x, y), x + 1)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]
    assert len(device.calls) == told


def test_a_kernel_that_is_compiled_for_a_size_is_launched_as_before(module, device) -> None:
    """Without `do_not_specialize` Triton compiles 1, and multiples of 16, apart."""
    for m in (3, 16, 3, 1, 16):
        x = torch.arange(4.0 * m).view(m, 4)
        assert torch.equal(module._fixed(x), x + 1)
    assert module._fixed.prepared == {}
    assert device.calls == []


def test_other_results_are_not_taken(module, device, monkeypatch) -> None:
    def wrong(function: int, *given: Any) -> None:
        device.launch(function, *given)
        if function == 82:
            floats(given[6][2], 1)[0] += 1

    monkeypatch.setattr(module, "_launch_at", wrong)
    for _ in range(5):
        right(module, 5)
    assert module._rows.prepared == {}
    assert [*module._rows.ways.values()] == [3]
    assert len(device.ordinary) == 2 * 5


def test_what_is_traced_has_the_shape_of_its_size(module, device) -> None:
    right(module, 5)
    x, y = torch.arange(28.0).view(7, 4), torch.ones(3)
    assert torch.ops.sized_without_a_gpu.rows(x.to("meta"), y.to("meta")).shape == (7, 4)
    assert torch.equal(torch.ops.sized_without_a_gpu.rows(x, y), x + 1)

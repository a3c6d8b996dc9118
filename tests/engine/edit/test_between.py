"""Launches with one of PyTorch's own calls between kernels: these are launched by C, the call is made as it was.
Triton's compiler and the driver are stood in for, as in test_prepared."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.support.both import KERNELS, TAKEN, both_module, floats, pair, right, shares_as_planned
from tests.support.driver import Device, device_of


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with both_module(tmp_path_factory.mktemp("between"), "between_without_a_gpu") as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    return device_of(module, KERNELS, monkeypatch)


def test_from_the_second_call_on_the_driver_is_told_by_c(module, device) -> None:
    right(module)
    assert device.ordinary == ["doubled_kernel", "added_kernel"]
    device.native.clear()
    device.made.clear()
    for _ in range(2):
        right(module)
    assert (len(device.ordinary), device.calls) == (2, [])
    assert [one[:9] for one in device.native] == [
        (70, 4, 1, 1, 128, 1, 1, 512, 5),
        (71, 2, 1, 1, 128, 1, 1, 512, 5),
    ] * 2
    assert device.made == [((512,), (1,), torch.uint8), ((2, 4), (4, 1), torch.float32)] * 2
    (x, *parts), added = device.native[-2][9][:3], device.native[-1][9][:4]
    assert parts[1] - parts[0] == 256
    assert list(added[:2]) == parts
    assert x not in added


@pytest.mark.parametrize("name", ["_both", *(f"_of_{one}" for one, _ in TAKEN)])
def test_tensors_may_have_any_name(name, module, device) -> None:
    x, y = pair()
    for _ in range(4):
        assert torch.equal(getattr(module, name)(x, y).reshape(-1), 2 * x + 8)
    assert len(device.ordinary) == 2
    misaligned = torch.arange(-1.0, 8.0)[1:]
    assert torch.equal(getattr(module, name)(misaligned, y).reshape(-1), 2 * x + 8)


def test_the_driver_is_told_what_may_start_early(module, device) -> None:
    module.added_kernel.jit.metadata.update(launch_pdl=True)
    for _ in range(3):
        right(module)
    assert device.early == [71] * 3


@pytest.mark.parametrize(
    "other", ["misaligned", "misaligned between", "device", "hook", "odd hook", "run", "own hook", "trouble"]
)
def test_what_is_other_than_it_was_is_launched_as_before(other, module, device, monkeypatch) -> None:
    right(module)
    device.ordinary.clear()
    (x, y), told = pair(), len(device.native)
    if other == "misaligned":
        x = torch.arange(-1.0, 8.0)[1:]
    elif other == "misaligned between":
        made = torch.full((9,), 3.0)[1:].view(2, 4)
        monkeypatch.setattr(torch, "mul", lambda y, by: made)
    elif other == "trouble":
        device.trouble = 1
    else:
        device.disturb(other, module.added_kernel, monkeypatch)
    assert torch.equal(module._both(x, y).reshape(-1), 2 * torch.arange(8.0) + 8)
    assert device.ordinary != []
    seen = [call[0] for call in device.native[told:]]
    assert seen == {"misaligned between": [70], "trouble": [70]}.get(other, [])


def test_other_results_are_not_taken(module, device, monkeypatch) -> None:
    usual = Device.run

    def wrong(self: Device, function: int, places: Any) -> None:
        usual(self, function, places)
        if function == 71 and self.native:
            floats(places[3])[0] += 1

    monkeypatch.setattr(Device, "run", wrong)
    right(module)
    assert device.native != []
    assert module._both.prepared == {}
    device.native.clear()
    right(module)


def test_a_result_that_is_read_before_is_turned_behind(module, device) -> None:
    x, y = pair()
    for _ in range(3):
        assert torch.equal(module._read(x, y), (2 * x + 8).view(2, 4).T)
    assert module._read.prepared == {}


def test_a_view_may_lie_at_any_address(module, device) -> None:
    x, y = torch.arange(8.0), torch.arange(9.0)
    for _ in range(3):
        assert torch.equal(module._behind(x, y).reshape(-1), 2 * x + 5 + y[1:])
    assert device.ordinary == ["doubled_kernel", "added_kernel"]
    assert device.calls == []


@pytest.mark.parametrize("name", ["chain", "mixed"])
def test_what_is_not_there_at_once_shares_memory(name, module, device) -> None:
    x, y = pair()
    for _ in range(4):
        device.native.clear()
        assert torch.equal(getattr(module, f"_{name}")(x, y).reshape(-1), 8 * x + 10)
    shares_as_planned(*(call[9] for call in device.native))

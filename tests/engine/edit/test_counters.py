"""Counters of kernels whose last blocks combine sums: zeros that are made once for each stream, and for each launch
that a graph has captured. The driver is stood in for: there is no GPU here."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.driver import Device, Kernel, Places, device_of, kernel_module

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def counted_kernel(x_ptr, parts_ptr, y_ptr, arrived_ptr):
    pass


def launch_counted(x):
    parts = torch.empty((8,), device=x.device, dtype=torch.float32)
    y = torch.empty((8,), device=x.device, dtype=torch.float32)
    arrived = torch.zeros((3,), device=x.device, dtype=torch.int32)
    counted_kernel[(4, 1, 1)](
        x, parts, y, arrived,
        num_warps=4, num_stages=2,
    )
    return y
"""


def counted(places: Places) -> None:
    """y = 2 x, with the counters as it found them."""
    x, y = ((ctypes.c_float * 8).from_address(places[at]) for at in (0, 2))
    counters = (ctypes.c_int32 * 3).from_address(places[3])
    assert list(counters) == [0, 0, 0]
    assert places[3] % 16 == 0
    y[:] = [2 * one for one in x]


KERNELS = {"counted_kernel": Kernel(80, 4, counted)}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    name = "counted_without_a_gpu"
    operator = f'_counted = _operator("{name}::counted", "launch_counted", lambda x: x.new_empty(8))'
    with kernel_module(tmp_path_factory.mktemp("counted"), name, TEXT, [operator]) as module:
        yield module


@pytest.fixture(params=[False, True], ids=["Python", "C"])
def device(request, module, monkeypatch) -> Device:
    if not request.param:
        monkeypatch.setattr(module, "_make_native", lambda: False)
    module._counted.prepared.clear()
    module._counted.tried.clear()
    module._counted.now.clear()
    return device_of(module, KERNELS, monkeypatch)


def test_prepared_launches_are_given_them(module, device, monkeypatch, request) -> None:
    asked: list[int] = []

    def noted(count: int, place: torch.device) -> torch.Tensor:
        asked.append(count)
        return torch.zeros(count, dtype=torch.int32)

    monkeypatch.setattr(module, "_counters", noted)
    for _ in range(4):
        assert torch.equal(module._counted(torch.arange(8.0)), 2 * torch.arange(8.0))
    assert asked == [3] * 5  # the first call is tried in both ways
    in_c = request.node.callspec.id == "C"
    assert type(module._counted.prepared[0]).__name__ == ("Launch" if in_c else "function")
    assert device.ordinary == ["counted_kernel"]
    assert len(device.native if in_c else device.calls) == 4


class Instead:
    """A module with other things in it."""

    def __init__(self, module: ModuleType, **others: object) -> None:
        self._module = module
        vars(self).update(others)

    def __getattr__(self, name: str) -> object:
        return getattr(self._module, name)


class Gpu:
    """What `_counters` asks of PyTorch. filled: numbers of each tensor that was filled with zeros"""

    def __init__(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stream, self.capturing, self.filled, self.waited = 7, False, list[int](), 0
        where = Instead(torch.cuda, current_stream=lambda _: SimpleNamespace(synchronize=self.wait))
        of_torch = Instead(torch, zeros=self.zeros, cuda=where)
        monkeypatch.setattr(module, "torch", of_torch)
        monkeypatch.setattr(module, "_current_device", lambda: 0)
        monkeypatch.setattr(module, "_current_stream", lambda _: self.stream)
        monkeypatch.setattr(module, "_capturing", lambda: self.capturing)
        for kept in (module._counting, module._for_graphs, module._given_to_graphs):
            kept.clear()
        self._of = module._counters

    def zeros(self, shape: tuple[int, ...], **_: object) -> torch.Tensor:
        self.filled.append(shape[0])
        return torch.zeros(shape, dtype=torch.int32)

    def wait(self) -> None:
        self.waited += 1

    def __call__(self, count: int, index: int = 0) -> tuple[int, int]:
        """Where they begin and end."""
        place: Any = SimpleNamespace(type="cuda", index=index)
        found = self._of(count, place)
        assert found.numel() >= count
        assert not found.any()
        return found.data_ptr(), found.data_ptr() + 4 * count


@pytest.fixture
def gpu(module, monkeypatch) -> Gpu:
    return Gpu(module, monkeypatch)


def test_a_stream_has_its_own(gpu) -> None:
    """It runs one kernel after the other."""
    first = gpu(3)
    assert [gpu(3), gpu(100)[0], gpu(1)[0]] == [first, first[0], first[0]]
    gpu.stream = 8
    assert gpu(3) != first
    gpu.stream = 7
    assert gpu(3) == first
    assert gpu.waited == 1
    before = len(gpu.filled)
    assert gpu(5000)[0] == gpu(5000)[0] != first[0]
    assert gpu.filled[before:] == [5000]


def test_a_captured_launch_has_some_for_good(gpu, module) -> None:
    first = gpu(3)
    gpu.capturing = True
    before = list(gpu.filled)
    places = sorted([gpu(3), gpu(3), gpu(40), gpu(1), first])
    assert gpu.filled == before  # a fill would be one more node of the graph
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert all(start % 16 == 0 for start, _ in places)
    for _ in range(module._COUNTERS // 1024):
        gpu(1024)
    assert gpu.filled == [*before, 1024]  # where none is left, the graph fills its own
    gpu.capturing = False
    gpu(3)
    gpu(5000)  # of a stream that had fewer; and there are some for graphs again
    gpu.capturing = True
    again = gpu(3)
    assert gpu.filled[-1] == 5000
    assert all(not start <= again[0] < end for start, end in places)
    assert len(module._given_to_graphs) == 2


def test_an_operator_keeps_nothing(module, device, monkeypatch) -> None:
    """Whoever compiled what calls it may have a pool of memory of his own."""
    gpu = Gpu(module, monkeypatch)
    place: Any = SimpleNamespace(type="cuda", index=0)
    named: list[object] = []
    known = module._torch.zeros

    def zeros(shape: tuple[int, ...], **_: object) -> torch.Tensor:
        named.append(vars(module._of_operator).get("name"))
        return known(shape, dtype=torch.int32, device=place)

    monkeypatch.setattr(module._torch, "zeros", zeros, raising=False)
    x = torch.arange(8.0)
    for _ in range(2):
        assert torch.equal(torch.ops.counted_without_a_gpu.counted(x), 2 * x)
    assert named == ["counted_without_a_gpu::counted"] * 2
    assert gpu.filled == [3, 3]
    assert not vars(module._of_operator)
    assert not module._counting


def test_where_streams_are_not_known(gpu) -> None:
    gpu.capturing = True  # before anything else has run
    gpu(3), gpu(3)
    assert gpu.filled == [3, 3]
    gpu.capturing, gpu.stream = False, 2  # another one in each thread
    gpu(3), gpu(3)
    assert gpu.filled[-2:] == [3, 3]
    gpu.stream = 7
    gpu(3, index=1)  # it is not the current device
    assert gpu.filled[-1] == 3

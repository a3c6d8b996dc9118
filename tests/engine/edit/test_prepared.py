"""Launches that are written as straight-line code at their first call. Triton's compiler and the driver are stood in
for: there is no GPU here. The driver's stand-in reads and writes memory where it is told."""

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
    with both_module(tmp_path_factory.mktemp("prepared"), "prepared_without_a_gpu") as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    """Where nothing is compiled in C."""
    monkeypatch.setattr(module, "_make_native", lambda: False)
    return device_of(module, KERNELS, monkeypatch)


def test_it_is_prepared_once_and_told_what_triton_would_say(module, device) -> None:
    right(module)
    assert device.ordinary == ["doubled_kernel", "added_kernel"]
    assert [call[:7] for call in device.calls] == [  # tried at once
        (70, 4, 1, 1, 4, 512, "OOOOO"),
        (71, 2, 1, 1, 4, 512, "OOOOOO"),
    ]
    assert [(call[7][-2:], call[8]) for call in device.calls] == [((None, None), 5)] * 2
    for _ in range(2):
        right(module)
    assert len(device.ordinary) == 2
    assert len(device.calls) == 6


def test_results_are_made_as_the_program_has_them(module, device) -> None:
    """A kernel stores one element after the other; the program reads it turned, without a view for each call."""
    (x, y), wanted = pair(), (2 * torch.arange(8.0) + 8).view(2, 4).T
    for _ in range(4):
        device.made.clear()
        turned = module._turned(x, y)
        assert (turned.shape, turned.stride()) == ((4, 2), (1, 4))
        assert torch.equal(turned, wanted)
        assert ((4, 2), (1, 4), torch.float32) in device.made  # tried at the first call
        more, out = module._two(x, y)
        assert torch.equal(more, torch.full((2, 4), 5.0))
        assert (out.shape, out.stride()) == ((4, 2), (1, 4))
        assert torch.equal(out, wanted)
    assert len(device.ordinary) == 4
    misaligned = torch.arange(-1.0, 8.0)[1:]
    assert torch.equal(module._turned(misaligned, y), wanted)
    assert torch.equal(torch.ops.prepared_without_a_gpu.turned(x, y), wanted)  # as where something traces
    fake = torch.ops.prepared_without_a_gpu.two(x.to("meta"), y.to("meta"))
    assert [one.stride() for one in fake] == [(4, 1), (1, 4)]


def test_a_result_that_is_read_before_is_turned_behind(module, device) -> None:
    x, y = pair()
    for _ in range(3):
        assert torch.equal(module._read(x, y), (2 * x + 8).view(2, 4).T)
    assert module._read.prepared == {}


@pytest.mark.parametrize("name", [one for one, _ in TAKEN])
def test_tensors_may_have_any_name(name, module, device) -> None:
    x, y = pair()
    for _ in range(4):
        assert torch.equal(getattr(module, f"_of_{name}")(x, y).reshape(-1), 2 * x + 8)
    assert len(device.ordinary) == 2
    assert len(device.calls) == 2 * 4
    misaligned = torch.arange(-1.0, 8.0)[1:]
    assert torch.equal(getattr(module, f"_of_{name}")(misaligned, y).reshape(-1), 2 * x + 8)


def test_what_kernels_alone_read_is_allocated_at_once(module, device) -> None:
    right(module)
    device.made.clear()
    x, y = pair()
    module._both(x, y)
    assert device.made == [((512,), (1,), torch.uint8), ((2, 4), (4, 1), torch.float32)]
    (at, first, second, *_), (third, *_) = (call[7] for call in device.calls[-2:])
    assert (second - first, third, at) == (256, first, x.data_ptr())


@pytest.mark.parametrize("name", ["chain", "mixed"])
def test_what_is_not_there_at_once_shares_memory(name, module, device) -> None:
    x, y = pair()
    for _ in range(3):
        device.made.clear()
        assert torch.equal(getattr(module, f"_{name}")(x, y).reshape(-1), 8 * x + 10)
    assert device.made == [((1536,), (1,), torch.uint8), ((2, 4), (4, 1), torch.float32)]
    shares_as_planned(*(call[7] for call in device.calls[-4:]))
    assert len(device.ordinary) == 4


@pytest.mark.parametrize("other", ["misaligned", "misaligned between", "device", "hook", "odd hook", "run", "own hook"])
def test_what_is_other_than_it_was_is_launched_as_before(other, module, device, monkeypatch) -> None:
    right(module)
    device.ordinary.clear()
    (x, y), told = pair(), len(device.calls)
    if other == "misaligned":
        x = torch.arange(-1.0, 8.0)[1:]
    elif other == "misaligned between":
        made = torch.full((9,), 3.0)[1:].view(2, 4)
        monkeypatch.setattr(torch, "mul", lambda y, by: made)
    else:
        device.disturb(other, module.added_kernel, monkeypatch)
    assert torch.equal(module._both(x, y).reshape(-1), 2 * torch.arange(8.0) + 8)
    assert device.ordinary != []
    assert [call[0] for call in device.calls[told:]] == ([70] if other == "misaligned between" else [])


@pytest.mark.parametrize(
    "wants",
    [
        {"global_scratch_size": 16},
        {"profile_scratch_size": 16},
        {"launch_cooperative_grid": True},
        {"num_ctas": 2},
        {"cluster_dims": (2, 1, 1)},
    ],
)
def test_a_kernel_that_wants_more_stays_tritons(wants, module, device) -> None:
    module.added_kernel.jit.metadata.update(wants)
    for _ in range(5):
        module._both(*pair())
    assert device.calls == []
    assert module._both.prepared == {}


def test_what_may_start_early_is_launched_after_all_before_it(module, device) -> None:
    """PyTorch's launcher cannot be told; a kernel that waits for what has ended does not wait."""
    module.added_kernel.jit.metadata.update(launch_pdl=True)
    for _ in range(3):
        right(module)
    assert [call[0] for call in device.calls] == [70, 71] * 3
    assert device.early == []


def test_other_results_are_not_taken(module, device, monkeypatch) -> None:
    right(module)
    module._both.prepared.clear()
    module._both.tried.clear()

    def wrong(function: int, *given: Any) -> None:
        device.launch(function, *given)
        if function == 71:
            floats(given[6][3])[0] += 1

    monkeypatch.setattr(module, "_launch_at", wrong)
    right(module)
    assert module._both.prepared == {}
    assert module._both.tried == [0]


@pytest.mark.parametrize("lacks", ["_launch_at", "_empty_on_gpu", "capturing", "text"])
def test_without_what_it_needs_nothing_is_prepared(lacks, module, device, monkeypatch) -> None:
    if lacks == "capturing":
        monkeypatch.setattr(module, "_capturing", lambda: True)
    elif lacks == "text":
        monkeypatch.setitem(module._codes, "launch_both", right.__code__)
    else:
        monkeypatch.setattr(module, lacks, None)
    for _ in range(2):
        module._both(*pair())
    assert device.calls == []


def test_sizes_that_vary_are_launched_as_before(module, device) -> None:
    for _ in range(2):
        module._any(torch.arange(8.0))
    assert (device.calls, module._any.prepared) == ([], {})


def test_a_view_may_lie_at_any_address(module, device) -> None:
    """As the odd columns of a matrix do at each call: what Triton compiled for them asks for no multiples of 16."""
    x, y = torch.arange(8.0), torch.arange(9.0)
    for _ in range(3):
        assert torch.equal(module._behind(x, y).reshape(-1), 2 * x + 5 + y[1:])
    assert device.ordinary == ["doubled_kernel", "added_kernel"]
    assert len(device.calls) == 2 * 3
    misaligned = torch.arange(-1.0, 8.0)[1:]
    assert torch.equal(module._behind(misaligned, y).reshape(-1), 2 * x + 5 + y[1:])
    assert len(device.ordinary) == 4


def test_what_is_given_at_any_address_is_prepared_where_it_always_is(module, device, monkeypatch) -> None:
    """As `x[:, 1::2]` is, which PyTorch makes in each call: the second kernel, which reads other tensors, has them in
    whole words."""
    monkeypatch.setattr(module, "_make_native", lambda: False)
    y, views = torch.ones(2, 4), [torch.arange(-1.0 - number, 8.0)[1 + number :] for number in (0, 1, 2)]
    assert all(view.data_ptr() & 15 for view in views)
    wanted = 2 * torch.arange(8.0) + 8
    for number in range(5):
        assert torch.equal(module._both(views[number % 3], y).reshape(-1), wanted)
        assert len(device.ordinary) == 2 * min(number + 1, 3)
    assert torch.equal(module._both(torch.arange(8.0), y).reshape(-1), wanted)
    assert len(device.ordinary) == 6


def test_what_one_kernel_reads_in_whole_words_is_not_launched_at_any_address(module, device, monkeypatch) -> None:
    """Kernels of a launch may have met a tensor at different addresses: each is compiled for its own."""
    monkeypatch.setattr(module, "_make_native", lambda: False)
    x, y = pair()
    made = [torch.full((9,), 3.0)[1:].view(2, 4), torch.full((2, 4), 3.0)]
    monkeypatch.setattr(torch, "mul", lambda y, by: made[0])
    odd = torch.arange(-1.0, 8.0)[1:]
    for _ in range(4):
        assert torch.equal(module._both(odd, y).reshape(-1), 2 * x + 8)
    told = len(device.calls)
    monkeypatch.setattr(torch, "mul", lambda y, by: made[1])  # at any address is at multiples of 16 as well
    assert torch.equal(module._both(odd, y).reshape(-1), 2 * x + 8)
    assert [call[0] for call in device.calls[told:]] == [70, 71]
    assert len(device.ordinary) == 6


def test_guards_are_in_c_where_launches_are_not(module, device, monkeypatch) -> None:
    asked: list[None] = []
    monkeypatch.setattr(module, "_make_native", lambda: bool(asked.append(None)))
    module._any(torch.arange(8.0))
    assert (asked, module._any.prepared) == ([None], {})

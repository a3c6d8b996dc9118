"""What C knows of regions and tensors, and launches by itself. Triton's compiler and the driver are stood in for, as in
test_prepared."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.driver import Device, device_of
from tests.support.joined import KERNELS, joined_module, on_the_first_gpu, pair, right


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with joined_module(tmp_path_factory.mktemp("native"), "known_without_a_gpu") as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    return device_of(module, KERNELS, monkeypatch)


@pytest.fixture
def on_gpu(module, device) -> Iterator[None]:
    with on_the_first_gpu(module):
        yield


def test_tensors_are_read_where_pytorch_keeps_them(module) -> None:
    handle, keys, *functions = module._inside_tensors()
    assert handle
    assert keys
    assert all(functions)
    assert module._tells_modes()


def test_from_the_third_call_on_python_is_not_asked_who_traces(module, device, on_gpu, monkeypatch) -> None:
    right(module)
    monkeypatch.setattr(module, "_compiling", None)  # what Python would ask
    device.native.clear()
    right(module)
    assert len(device.native) == 2


class Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("how", ["mode", "flag"])
def test_what_traces_sees_the_operator(how, module, device, on_gpu, monkeypatch) -> None:
    right(module)
    monkeypatch.setattr(torch.cuda, "device_of", lambda tensor: contextlib.nullcontext())
    given, mode = pair(), Noting()
    device.native.clear()
    if how == "mode":
        with mode:
            module._joined(*given)
        assert "known_without_a_gpu.joined.default" in mode.seen
    else:
        monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)
        module._joined(*given)
    assert device.native == []


class Owner:
    def __init__(self, y: torch.Tensor) -> None:
        self.y = y


def known_by(module: ModuleType, owner: Any, x: torch.Tensor) -> Any:
    """What is known of an argument and of what an object holds."""
    held = module._native.Held((), [], [], [], [], [vars(owner)])
    tensors = x, owner.y
    fit = module._native.Fit([(module._likeness(*tensors), False, module._alike_in_c(*tensors))])
    known = module._native.Known(held, fit, ((0, owner),), (owner,), ((1, None), (-1, owner.y)))
    held.at(held.now())
    return known


def done_by(module: ModuleType, owner: Any, x: torch.Tensor) -> tuple[Any, Any]:
    """What launches on those, and what says that nothing changed."""
    known, launch = known_by(module, owner, x), module._joined.prepared[0]
    return module._native.Done({id(owner): known}, 0, launch, (0, 1)), module._native.Asked({id(owner): known}, 0)


def test_a_region_is_launched_on_what_is_known(module, device, on_gpu) -> None:
    right(module)
    x, y = pair()
    owner = Owner(y)
    done, asked = done_by(module, owner, x)
    device.native.clear()
    product, total = done(owner, x)
    assert torch.equal(product, 2 * x * y.reshape(-1))
    assert torch.equal(total, 2 * x.view(2, 4) + 5 + y)
    assert len(device.native) == 2
    with torch.no_grad():
        assert asked(owner, x)
        assert not asked(owner, torch.ones(9))
    assert done(Owner(y), x) is None
    assert done() is None
    assert done(owner) is None
    assert done(owner, None) is None  # not a tensor
    device.trouble = 1
    assert done(owner, x) is None
    device.trouble = 0
    device.current = 1
    assert done(owner, x) is None
    device.current = 0
    with Noting():
        assert done(owner, x) is None
    assert done(owner, x) is not None
    owner.y = torch.zeros(2, 4)
    assert done(owner, x) is None
    assert not asked(owner, x)


def test_the_tensors_that_are_known_are_given_at_once(module, device, on_gpu) -> None:
    right(module)
    x, y = pair()
    owner = Owner(y)
    known = {id(owner): known_by(module, owner, x)}
    given = module._native.Given(known, 0)
    first, second = given(owner, x)
    assert first is x
    assert second is y
    other = torch.ones(3)
    assert given(owner, other)[0] is other  # whether it fits was asked before
    assert given(Owner(y), x) is None
    assert given() is None
    assert given(owner) is None
    before = [sys.getrefcount(one) for one in (x, y, owner)]
    for _ in range(20):
        given(owner, x)
        given(Owner(y), x)
    assert [sys.getrefcount(one) for one in (x, y, owner)] == before
    owner.y = torch.zeros(2, 4)
    assert given(owner, x) is None
    known.clear()
    assert given(owner, x) is None
    with pytest.raises(ValueError, match="no argument"):
        module._native.Given(known, -1)


def test_a_region_that_is_launched_in_c_leaks_nothing(module, device, on_gpu) -> None:
    right(module)
    x, y = pair()
    owner = Owner(y)
    done, asked = done_by(module, owner, x)
    done(owner, x)
    counted = (x, y, owner, module._joined.prepared[0])
    before = [sys.getrefcount(one) for one in counted]
    with torch.no_grad():
        for _ in range(20):
            done(owner, x)
            done(owner, None)
            asked(owner, x)
            asked(owner, None)
    assert [sys.getrefcount(one) for one in counted] == before
    alive = weakref.ref(owner)
    del owner, counted, done, asked
    gc.collect()
    assert alive() is None


def test_tensors_are_told_apart_in_c(module, on_gpu) -> None:
    first, plain = torch.zeros(3), torch.zeros(2, 4)
    alike = module._native.Alike(module._likeness(first), (first, plain))
    nested = torch.nested.nested_tensor([torch.zeros(8), torch.zeros(8)])
    others = [
        torch.zeros(4, 2),
        torch.zeros(2, 4, 1),
        torch.zeros(2, 8)[:, ::2],
        plain.double(),
        nested,
        plain.to("meta"),
    ]
    others += [torch.nn.Parameter(plain), torch._neg_view(plain), torch._efficientzerotensor((2, 4)), plain.to_sparse()]
    assert alike(torch.ones(3), torch.ones(2, 4))
    assert not any(alike(first, other) for other in (*others, None, 1))
    assert not any(alike(other, plain) for other in (nested, torch.zeros(4), None))
    assert not alike(first)


def test_what_makes_no_sense_to_know_is_refused(module, device, on_gpu) -> None:
    right(module)
    native, launch = module._native, module._joined.prepared[0]
    held, fit = native.Held((), [], [], [], [], []), native.Fit([])
    wrong: list[Any] = [
        lambda: native.Known(fit, held, (), (), ()), lambda: native.Known(held, fit, (1,), (), ()),
        lambda: native.Known(held, fit, (), (), ((-1, None),) * 2049), lambda: native.Asked({}, -1),
        lambda: native.Done({}, 0, print, ()), lambda: native.Done({}, 0, launch, (0,)),
        lambda: native.Done({}, 0, launch, (0, -1)), lambda: native.Now(print, print),
        lambda: native.Alike(print, ()), lambda: native.Alike(print, (None,)),
    ]  # fmt: skip
    for make in wrong:
        with pytest.raises((TypeError, ValueError)):
            make()
    tensors = tuple(torch.ones(2) for _ in range(300))  # of a network with a hundred layers
    assert native.Known(held, fit, (), (), tuple((-1, one) for one in tensors))
    assert native.Alike(module._likeness(tensors[0]), tensors)(*tensors)

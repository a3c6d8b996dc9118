"""Launches and guards in C. Triton's compiler and the driver are stood in for, as in test_prepared."""

from __future__ import annotations

import gc
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from mugraph.edit.module.native import C_TEXT

from tests.support.driver import Device, Kernel, Places, device_of
from tests.support.joined import KERNELS, floats, joined, joined_module, pair, right


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with joined_module(tmp_path_factory.mktemp("native"), "native_without_a_gpu") as module:
        yield module


@pytest.fixture
def device(module, monkeypatch) -> Device:
    return device_of(module, KERNELS, monkeypatch)


def test_the_text_compiles_without_a_warning(tmp_path) -> None:
    path = tmp_path / "native.c"
    path.write_text(C_TEXT)
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-std=c11", "-fsyntax-only", f"-I{sysconfig.get_paths()['include']}"]
    subprocess.run(["gcc", *flags, str(path)], check=True)


def test_from_the_second_call_on_the_driver_is_told_by_c(module, device) -> None:
    right(module)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]
    assert type(module._joined.prepared[0]).__name__ == "Launch"
    device.native.clear()
    right(module)
    assert (len(device.ordinary), device.calls) == (2, [])
    assert [one[:9] for one in device.native] == [(70, 4, 1, 1, 128, 1, 1, 512, 5), (71, 2, 3, 1, 128, 1, 1, 512, 5)]
    assert [one[9][-2:] for one in device.native] == [(0, 0)] * 2  # scratch of Triton's own


def test_the_driver_is_told_what_may_start_early(module, device) -> None:
    right(module)
    assert device.early == []
    module._joined.prepared.clear()
    module._joined.tried.clear()
    module._joined.now.clear()
    module.joined_kernel.jit.metadata.update(launch_pdl=True)
    module.joined_kernel.clear()  # what was learned of it
    module.parts_kernel.clear()
    for _ in range(3):
        right(module)
    assert device.early == [71] * 3  # once more to compare it with Triton's
    assert [one[:9] for one in device.native[-2:]] == [
        (70, 4, 1, 1, 128, 1, 1, 512, 5),
        (71, 2, 3, 1, 128, 1, 1, 512, 5),
    ]
    device.ordinary.clear()
    device.trouble = 801  # not supported
    right(module)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]


def test_results_are_made_as_the_program_has_them(module, device) -> None:
    x, y = pair()
    wanted = (2 * x.view(2, 4) + 5 + y).T
    for _ in range(3):
        product, total = module._turned(x, y)
        assert torch.equal(product, 2 * x * y.reshape(-1))
        assert (total.shape, total.stride()) == ((4, 2), (1, 4))
        assert torch.equal(total, wanted)
    assert type(module._turned.prepared[0]).__name__ == "Launch"
    assert ((4, 2), (1, 4), torch.float32) in device.made
    assert len(device.ordinary) == 2


def test_scratch_is_one_tensor_and_stays_with_its_stream(module, device) -> None:
    right(module)
    device.made.clear()
    device.native.clear()
    right(module)
    device.stream = 6
    right(module)
    right(module)
    scratch, outputs = ((512,), (1,), torch.uint8), [((2, 4), (4, 1), torch.float32), ((8,), (1,), torch.float32)]
    assert device.made == [*outputs, *outputs, scratch, *outputs]
    first, other, again = (one[9][1] for one in device.native[::2])
    assert first != other == again
    assert [one[9][2] - one[9][1] for one in device.native[::2]] == [256] * 3


def test_what_is_captured_has_scratch_of_its_own(module, device) -> None:
    right(module)
    device.made.clear()
    device.native.clear()
    device.capturing = 1
    right(module)
    right(module)
    assert sum(shape == (512,) for shape, *_ in device.made) == 2
    device.capturing = 0
    right(module)
    assert sum(shape == (512,) for shape, *_ in device.made) == 2


def test_much_scratch_is_not_kept(module, device) -> None:
    for _ in range(4):
        assert torch.equal(module._large(torch.arange(8.0)), torch.full((8,), 5.0))
    assert type(module._large.prepared[0]).__name__ == "Launch"
    assert sum(dtype == torch.uint8 for *_, dtype in device.made) == 4  # one to compare, and one a call


def test_threads_do_not_share_scratch(module, device) -> None:
    right(module)
    wrong: list[BaseException] = []

    def several(start: int) -> None:
        try:
            for number in range(start, start + 10):
                right(module, torch.arange(8.0) + number, torch.full((2, 4), float(number)))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=several, args=(100 * number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
    assert len(device.native) > 80


def test_what_is_given_at_any_address_is_launched_by_c_where_it_always_is(module, device) -> None:
    x = torch.arange(-1.0, 8.0)[1:]
    for _ in range(3):
        right(module, x)
    assert len(device.ordinary) == 6
    told = len(device.native)
    for given in (x, torch.arange(-2.0, 8.0)[2:], torch.arange(8.0)):
        right(module, given)
    assert len(device.native) == told + 2 * 3
    right(module, x, torch.ones(9)[1:].view(2, 4))  # which was always in whole words
    assert len(device.ordinary) == 8


@pytest.mark.parametrize("other", ["misaligned", "device", "hook", "odd hook", "run", "own hook", "trouble"])
def test_what_is_other_than_it_was_is_launched_as_before(other, module, device, monkeypatch) -> None:
    right(module)
    device.ordinary.clear()
    device.native.clear()
    x = None
    if other == "misaligned":
        x = torch.arange(-1.0, 8.0)[1:]
    elif other == "trouble":
        device.trouble = 201  # no context in this thread
    else:
        device.disturb(other, module.joined_kernel, monkeypatch)
    right(module, x)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]
    assert len(device.native) == (other == "trouble")


def test_other_results_are_not_taken(module, device, monkeypatch) -> None:
    def wrong(places: Places) -> None:
        joined(places)
        floats(places[4])[0] += len(device.ordinary) == 2

    monkeypatch.setitem(device.kernels, "joined_kernel", Kernel(71, 5, wrong))
    module._joined(*pair())
    device.kernels["joined_kernel"] = Kernel(71, 5, joined)
    assert device.ordinary == ["parts_kernel", "joined_kernel"]


def test_a_call_that_cannot_be_says_so(module, device) -> None:
    right(module)
    native = module._joined.prepared[0]
    with pytest.raises(TypeError):
        native(torch.ones(8))
    with pytest.raises(TypeError, match="data_ptr"):
        native(1, 2)


def test_nothing_leaks(module, device) -> None:
    right(module)
    x, y = pair()
    for _ in range(3):
        module._joined(x, y)
    counted = (x, y, module._joined.prepared[0], device, device.made)
    before = [sys.getrefcount(one) for one in counted]
    for _ in range(20):
        module._joined(x, y)
    device.trouble = 1
    module._joined(x, y)
    device.trouble = 0
    assert [sys.getrefcount(one) for one in counted] == before


def test_launches_that_make_no_sense_are_refused(module, device) -> None:
    right(module)
    kind = type(module._joined.prepared[0])
    objects = (print, [], (), print, (((8,), (1,), torch.float32),), (), (), (), 0, None)
    good: list[Any] = [
        objects,
        0,
        (1, 1, 1, 1, 1),
        False,
        (True,),
        (None,),
        ((70, (1, 1, 1), 32, 0, False, ((0, 0), (1, 0))),),
        (0,),
    ]
    assert isinstance(kind(*good), kind)
    bad: list[tuple[int, Any]] = [
        (0, objects[:-1]), (0, (*objects[:5], [], *objects[6:])), (2, (0, 1, 1, 1, 1)),
        (2, (1, 0, 1, 1, 1)), (2, (1, 1, 1, 1, 0)),
        (0, (print, [1], *objects[2:])), (0, (*objects[:2], ({},), *objects[3:])), (7, (1,)), (7, ()), (7, (-1,)),
        (6, ((70, (1, 1, 1), 32, 0, False, ()),)), (6, ((70, (1, 1, 1), 32, 0, False, ((2, 0),)),)), (6, (70,)),
        (6, ((70, (1, 1, 1), 32, 0, False, ((0, 0),) * 65),)), (4, (False,)), (4, (True,) * 64), (3, True),
        (5, ()), (5, (1,)), (5, (((1,), (1, 1)),)), (5, (((1,) * 9, (1,) * 9),)), (5, ((("1",), (1,)),)),
    ]  # fmt: skip
    for at, value in bad:
        with pytest.raises((TypeError, ValueError)):
            kind(*good[:at], value, *good[at + 1 :])


def test_without_a_compiler_python_does_it_all(module, device, monkeypatch) -> None:
    def fails(*given: Any) -> None:
        raise subprocess.CalledProcessError(1, ["gcc"])

    build = sys.modules["triton.runtime.build"]
    monkeypatch.setattr(build, "compile_module_from_src", fails)
    for name in [name for name in sys.modules if name.startswith("_mugraph_native_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(module, "_native", None)
    monkeypatch.setattr(module, "_tried_native", False)
    for _ in range(2):
        right(module)
    assert device.native == []
    assert len(device.calls) == 4


def test_a_count_that_misses_changes_is_not_used(module, monkeypatch) -> None:
    assert module._make_native()
    assert module._tells_changes(module._native)

    def deaf(*given: Any) -> Any:
        one = module._native.Held(*given[:-1], [])
        return one if given[-1] else module._native.Held(*given)

    assert not module._tells_changes(SimpleNamespace(Held=deaf))


def test_what_is_held_is_let_go(module) -> None:
    assert module._make_native()

    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    hooks: list[Any] = [{}]
    one = module._native.Held((1, 2), hooks, [], [], [], [])
    hooks.append({"round": one, "thing": thing})  # a circle
    del one, hooks, thing
    gc.collect()
    assert alive() is None


def held_on(module: ModuleType, **rows: Any) -> Any:
    """What asks whether functions, classes and other things still are as they are said to be, found so now."""
    assert module._make_native()
    one = module._native.Held((), [], *(rows.get(name, []) for name in ("functions", "kinds", "others")), [])
    one.at(one.now())
    return one


def test_a_class_is_told_by_what_it_comes_from_and_by_its_class(module) -> None:
    class Meta(type):
        pass

    class OtherMeta(type):
        pass

    class First(metaclass=Meta):
        pass

    class Second(metaclass=Meta):
        pass

    class Kind(First):
        pass

    one = held_on(module, kinds=[(Kind, Kind.__mro__, Meta)])
    assert one()
    Kind.__bases__ = (Second,)
    assert not one()
    other = held_on(module, kinds=[(First, First.__mro__, Meta)])
    assert other()
    First.__class__ = OtherMeta
    assert not other()


def test_a_function_is_told_by_its_code_and_its_defaults(module) -> None:
    def function(x: int = 1, *, y: int = 2) -> int:
        return x + y

    row = function, function.__code__, function.__defaults__, dict(function.__kwdefaults__)
    one = held_on(module, functions=[row])
    assert one()
    function.__kwdefaults__["y"] = 3
    assert not one()
    function.__kwdefaults__["y"] = 2
    assert one()
    function.__defaults__ = (2,)
    assert not one()
    function.__defaults__ = row[2]
    function.__code__ = (lambda x=1, *, y=2: x - y).__code__
    assert not one()


def test_other_things_are_told_by_what_they_read_as(module) -> None:
    things, space = [1], SimpleNamespace(value=3)
    one = held_on(module, others=[(lambda thing: thing.value, [space], [3]), (len, [things], [1])])
    assert one()
    things.append(2)
    assert not one()
    things.pop()
    del space.value  # what cannot be read is not the same
    assert not one()

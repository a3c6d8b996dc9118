"""What a guard remembers of modules and tensors keeps nothing alive, and is forgotten as soon as anything changes."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from mugraph.edit.apply import apply_files


@pytest.fixture(params=["in C", "in Python"])
def loaded(request, gated_file, maker, source, part, load, on_this_machine):
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    found = load(gated_file)
    on_this_machine(found.kernels)
    assert request.param == "in Python" or found.kernels._make_native()
    return found


def asked(loaded, times: int = 3):
    model, x = loaded.model.Gated().eval(), torch.randn(4, 8)
    with torch.no_grad():
        for _ in range(times):
            model(x)
    return model


def test_tensors_are_told_apart_by_pytorchs_own_comparison(loaded) -> None:
    kernels, plain = loaded.kernels, torch.zeros(4, 8)
    assert kernels._apart
    assert kernels._fit_from_now("sample", plain)
    assert kernels._fit_again("sample", torch.ones(4, 8))
    others = [torch.zeros(8, 8)[::2], torch.zeros(4, 9)[:, 1:], plain.double(), torch.nn.Parameter(plain), plain.mT]
    nested = torch.nested.nested_tensor([torch.zeros(8), torch.zeros(8)])  # to compare it would end the process
    assert [kernels._fit_again("sample", other) for other in (*others, nested)] == [False] * 6
    with torch.autocast("cpu"):
        assert not kernels._fit_again("sample", plain)
    with torch.autograd.forward_ad.dual_level():
        assert not kernels._fit_again("sample", plain)


def test_nothing_is_kept_alive(loaded) -> None:
    model = asked(loaded)
    parts = [weakref.ref(one) for one in (*model.modules(), *model.parameters())]
    del model
    gc.collect()
    assert [one() for one in parts] == [None] * len(parts)
    assert not loaded.kernels._seen


def test_what_was_tested_without_gradients_is_asked_again_with_them(loaded) -> None:
    kernels, weight = loaded.kernels, torch.nn.Parameter(torch.zeros(4, 8))
    with torch.no_grad():
        kernels._fit_from_now("sample", weight)
        assert kernels._fit_again("sample", weight)
    assert not kernels._fit_again("sample", weight)


def test_guards_are_asked_in_c_once_they_held(loaded) -> None:
    kernels, model = loaded.kernels, asked(loaded)
    (world,) = kernels._worlds.values()
    assert [len(world.native), len(kernels._fitted_in_c)] == [kernels._native is not None] * 2
    if kernels._native is not None:
        (native,) = world.native
        assert native(world.things)
        assert not native((*world.things, None))
        world.dicts[0]["changed since then"] = True
        assert not native(world.things)
        del world.dicts[0]["changed since then"]
        with torch.no_grad():
            model(torch.randn(4, 8))
        assert not native(world.things)  # it is counted, not undone: all is compared anew, once
        with torch.no_grad():
            model(torch.randn(4, 8))
        assert native(world.things)


def test_a_parameter_is_told_from_what_takes_its_place(loaded) -> None:
    kernels, weight = loaded.kernels, torch.nn.Parameter(torch.zeros(4, 8), requires_grad=False)
    assert kernels._fit_from_now("sample", weight)
    assert [kernels._fit_again("sample", weight) for _ in range(3)] == [True] * 3
    nested = torch.nested.nested_tensor([torch.zeros(8), torch.zeros(8)])
    assert not kernels._fit_again("sample", nested)
    weight.data = torch.zeros(4, 9)[:, 1:]
    assert not kernels._fit_again("sample", weight)
    weight.data = torch.zeros(33)[1:].view(4, 8)
    assert not kernels._fit_again("sample", weight)
    weight.data = torch.ones(4, 8)
    assert kernels._fit_again("sample", weight)


def test_tensors_that_may_begin_at_any_address(loaded) -> None:
    kernels, plain, shifted = loaded.kernels, torch.zeros(4, 8), torch.zeros(35)[3:].view(4, 8)
    other, another = torch.zeros(4, 8), torch.zeros(35)[3:].view(4, 8)
    assert kernels._fit_from_now("first", shifted, plain, anywhere=(0,))
    for _ in range(3):  # in Python, then in C
        assert kernels._fit_again("first", shifted, plain)
        assert kernels._fit_again("first", other, plain)
        assert not kernels._fit_again("first", plain, shifted)
        assert not kernels._fit_again("first", another, shifted)
    assert kernels._fit_from_now("none", shifted, plain)
    assert not any(kernels._fit_again("none", shifted, plain) for _ in range(3))


def test_where_tensors_begin_is_asked_of_those_that_were_whole_words(loaded) -> None:
    kernels, plain, shifted = loaded.kernels, torch.zeros(4, 8), torch.zeros(35)[3:].view(4, 8)
    assert kernels._runs_here(plain, anywhere=(shifted,))
    assert kernels._runs_here(anywhere=(shifted, plain))
    assert not kernels._runs_here(shifted, anywhere=(plain,))
    for other in (torch._neg_view(plain), torch._efficientzerotensor((4, 8)), plain.to_sparse(), plain.to("meta")):
        assert not kernels._runs_here(plain, anywhere=(other,))
    assert not kernels._runs_here(anywhere=(plain.clone().requires_grad_(),))

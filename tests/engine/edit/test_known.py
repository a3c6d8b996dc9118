"""A region's answer for objects that it has been asked of lasts until something changes, and no longer."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch

X = (4, 32)
TEXT = """
import torch
from torch import nn
from torch.nn import functional as F


# mugraph: x=f32[4, 32]
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 32, bias=False))
        self.up = nn.Linear(32, 32, bias=False)

    def forward(self, x):
        return F.silu(self.layers[0](x)) * self.up(x)
"""


@pytest.fixture
def loaded(written, load_with_c):
    return load_with_c(written)


def asked(loaded, model=None):
    """A model whose answer is known."""
    model = loaded.model.Gated().eval() if model is None else model
    with torch.no_grad():
        assert [loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(8)] == [True] * 8
    return model


def answer(loaded):
    return loaded.kernels._gated_known


def test_it_is_known_after_some_calls_of_each_object(loaded) -> None:
    one = asked(loaded)
    other = loaded.model.Gated().eval()
    with torch.no_grad():
        assert answer(loaded)(one, torch.randn(X))
        assert not answer(loaded)(other, torch.randn(X))
        asked(loaded, other)
        assert answer(loaded)(one, torch.randn(X))
        assert answer(loaded)(other, torch.randn(X))


def test_it_keeps_nothing_alive(loaded) -> None:
    model = asked(loaded)
    parts = [weakref.ref(one) for one in (*model.modules(), *model.parameters())]
    del model
    gc.collect()
    assert [one() for one in parts] == [None] * len(parts)
    assert not any(loaded.kernels._in_c.values())
    assert not any(loaded.kernels._answers.values())


def test_what_is_computed_with_gradients_is_asked_elsewhere(loaded) -> None:
    model = asked(loaded)
    assert not answer(loaded)(model, torch.randn(X))
    assert not loaded.kernels.gated_fits(model, torch.randn(X))


def other_parameter(model) -> None:
    model.up.weight = torch.nn.Parameter(torch.randn(32, 33)[:, 1:])


def other_memory(model) -> None:
    model.up.weight.data = torch.randn(32, 33)[:, 1:]


def misaligned(model) -> None:
    model.up.weight.data = torch.randn(1025)[1:].view(32, 32)


def other_layer(model) -> None:
    model.layers[0] = torch.nn.Linear(32, 32, bias=False)


def layer_of_other_kind(model) -> None:
    model.layers.__class__ = type("Other", (torch.nn.Sequential,), {})


def other_type(model) -> None:
    model.double()


def hook(model) -> None:
    model.up.register_forward_hook(lambda *_: None)


def global_hook(model) -> None:
    torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: None)


def other_class(model) -> None:
    model.up.__class__ = type("Other", (torch.nn.Linear,), {})


def own_class(model) -> None:
    model.__class__ = type("Other", (type(model),), {})


def other_module(model) -> None:
    model.up = torch.nn.Sequential(torch.nn.Linear(32, 32, bias=False))


def own_forward(model) -> None:
    model.up.forward = lambda x: x


def code(model) -> None:
    torch.nn.Linear.forward = lambda self, x: x


CHANGES = [
    other_parameter, other_memory, other_layer, layer_of_other_kind, misaligned, other_type, hook, global_hook,
    other_class, own_class, other_module, own_forward, code,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_it_ends_with_a_change(change, loaded, monkeypatch) -> None:
    monkeypatch.setattr(torch.nn.Linear, "forward", torch.nn.Linear.forward)
    model, x = asked(loaded), torch.randn(X)
    with torch.no_grad():
        assert answer(loaded)(model, x)
        change(model)
        assert not answer(loaded)(model, x)
    torch.nn.modules.module._global_forward_pre_hooks.clear()


def test_what_changes_back_is_known_again(loaded) -> None:
    model, x = asked(loaded), torch.randn(X)
    with torch.no_grad():
        handle = model.up.register_forward_hook(lambda *_: None)
        assert not answer(loaded)(model, x)
        handle.remove()
        asked(loaded, model)
        assert answer(loaded)(model, x)


def test_modes_and_other_tensors_are_told(loaded) -> None:
    model, x = asked(loaded), torch.randn(X)
    known = answer(loaded)
    with torch.no_grad():
        assert known(model, x)
        others = [torch.randn(8, 32), torch.randn(4, 8), torch.randn(X).double(), torch.randn(32, 4).mT, x.to("meta")]
        others += [torch.nn.Parameter(x), torch._neg_view(x), torch._efficientzerotensor(X), x.to_sparse(), None]
        assert [known(model, other) for other in others] == [False] * len(others)
        with torch.autocast("cpu"):
            assert not known(model, x)
        with torch.overrides.BaseTorchFunctionMode():
            assert not known(model, x)
        assert torch.vmap(lambda _: torch.tensor(known(model, x)))(torch.zeros(2)).sum() == 0
    assert not known(model)
    assert not known()


def test_a_copy_is_another_object(loaded) -> None:
    model = asked(loaded)
    with torch.no_grad():
        assert not answer(loaded)(copy.deepcopy(model), torch.randn(X))


def test_an_attribute_that_changes_with_each_call_costs_time_only(loaded) -> None:
    model = loaded.model.Gated().eval()
    with torch.no_grad():
        for number in range(12):
            model.up.seen = number
            assert loaded.kernels.gated_fits(model, torch.randn(X))
    assert not any(loaded.kernels._in_c.values())

"""A no of a region's test is remembered for what was asked, and is asked anew as soon as anything about it changes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from mugraph.edit.module import refusals
from mugraph.research.launching import applied
from torch import nn

X = (4, 32)
TEXT = """
import torch
from torch import nn
from torch.nn import functional as F


# mugraph: x=f32[4, 32]
class Gated(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width, bias=False))
        self.up = nn.Linear(width, width, bias=False)
        self.scale = 2.0

    def forward(self, x):
        return F.silu(self.layers[0](x)) * self.up(x) * self.scale
"""


@pytest.fixture
def loaded(written, load_with_c):
    return load_with_c(written)


def refused(loaded, model, x=None):
    """The model, of which a no is remembered."""
    model, x = model.eval(), torch.randn(X) if x is None else x
    with torch.no_grad():
        assert [loaded.kernels.gated_fits(model, x) for _ in range(6)] == [False] * 6
        assert remembered(loaded, model, x)
    return model


def remembered(loaded, model, x) -> bool:
    """Whether nothing is left to ask but what is asked at every call."""
    if loaded.kernels._gated_differs(model, x):
        return not loaded.kernels._gated_others(model, x)
    return loaded.kernels._gated_refused(model, x)


def fits(loaded, model, x=None) -> bool:
    with torch.no_grad():
        x = torch.randn(X) if x is None else x
        assert not remembered(loaded, model, x)
        return loaded.kernels.gated_fits(model, x)


def test_what_is_asked_again_is_not_asked_in_python(loaded, monkeypatch) -> None:
    model = refused(loaded, loaded.model.Gated(64), torch.randn(4, 64))
    monkeypatch.setattr(loaded.kernels, "_as_analysed", lambda *_: pytest.fail("asked"))
    with torch.no_grad():
        assert not loaded.kernels.gated_fits(model, torch.randn(4, 64))


def test_it_is_for_one_object_and_one_kind_of_tensors(loaded) -> None:
    wide, x = loaded.model.Gated(64), torch.randn(4, 64)
    refused(loaded, wide, x)
    assert fits(loaded, loaded.model.Gated().eval())
    for other in (torch.randn(5, 64), x.double(), torch.randn(64, 4).mT, nn.Parameter(x), x.to("meta"), x.to_sparse()):
        assert not fits(loaded, wide, other)
    with torch.no_grad():
        assert remembered(loaded, wide, x)
    assert not remembered(loaded, wide, x)  # with gradients


def test_each_kind_of_tensors_is_added(loaded) -> None:
    model = loaded.model.Gated()
    for rows in range(5, 5 + 2 * 8):
        with torch.no_grad():
            assert not any(loaded.kernels.gated_fits(model, torch.randn(rows, 32)) for _ in range(4))
            assert remembered(loaded, model, torch.randn(rows, 32)) == (rows < 5 + 8)
    assert fits(loaded, model)
    with torch.no_grad():
        assert not loaded.kernels.gated_fits(model, torch.randn(5, 32))


def right_weight(model) -> None:
    model.up.weight = nn.Parameter(torch.randn(32, 32))


def right_memory(model) -> None:
    model.up.weight.data = torch.randn(32, 32)


def right_layer(model) -> None:
    model.up = nn.Linear(32, 32, bias=False).eval()


def right_item(model) -> None:
    model.layers[0] = nn.Linear(32, 32, bias=False).eval()


def wrong_weight(model) -> None:
    model.up.weight = nn.Parameter(torch.randn(32, 64)[:, 32:])


def wrong_memory(model) -> None:
    model.up.weight.data = torch.randn(32, 32).mT


def wrong_layer(model) -> None:
    model.up = nn.Linear(32, 32, bias=True).eval()


def wrong_item(model) -> None:
    model.layers[0] = nn.Linear(32, 32, bias=True).eval()


def wrong_type(model) -> None:
    model.double()


def right_type(model) -> None:
    model.float()


def another_constant(model) -> None:
    model.scale = 3.0


def the_constant(model) -> None:
    model.scale = 2.0


class Other(nn.Linear):
    pass


def another_class(model) -> None:
    model.up.__class__ = Other


def the_class(model) -> None:
    model.up.__class__ = nn.Linear


def own_forward(model) -> None:
    model.up.forward = lambda x: x


def no_forward_of_its_own(model) -> None:
    del model.up.forward


FORWARD = nn.Linear.forward
CODE = FORWARD.__code__


def another_method(model) -> None:
    nn.Linear.forward = lambda self, x: x


def the_method(model) -> None:
    nn.Linear.forward = FORWARD


def another_code(model) -> None:
    FORWARD.__code__ = (lambda self, input: input).__code__


def the_code(model) -> None:
    FORWARD.__code__ = CODE


@pytest.fixture
def as_it_was() -> object:
    yield None
    nn.Linear.forward = FORWARD
    FORWARD.__code__ = CODE


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (wrong_weight, right_weight),
        (wrong_memory, right_memory),
        (wrong_weight, right_layer),
        (wrong_layer, right_layer),
        (wrong_item, right_item),
        (wrong_type, right_type),
        (another_constant, the_constant),
        (another_class, the_class),
        (own_forward, no_forward_of_its_own),
        (another_method, the_method),
        (another_code, the_code),
    ],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("asked_before", [False, True])
def test_it_ends_with_the_reason(change: Callable, back: Callable, asked_before: bool, loaded, as_it_was) -> None:
    model = loaded.model.Gated().eval()
    if asked_before or change in (another_method, another_code):  # code is compared when it is met, and no more
        with torch.no_grad():
            assert all(loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(6))
    change(model)
    with torch.no_grad():
        assert not any(loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(6))
    back(model)
    assert fits(loaded, model)


@pytest.mark.parametrize(
    "change", [wrong_weight, wrong_memory, wrong_layer, wrong_item, another_class, another_constant]
)
def test_most_reasons_are_remembered(change: Callable, loaded) -> None:
    model = loaded.model.Gated()
    change(model)
    refused(loaded, model)


def test_a_hook_that_is_removed(loaded) -> None:
    model = loaded.model.Gated().eval()
    handle = model.up.register_forward_hook(lambda *_: None)
    with torch.no_grad():
        assert not any(loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(6))
    handle.remove()
    assert fits(loaded, model)


def test_modes_that_end(loaded) -> None:
    model = loaded.model.Gated().eval()
    for mode in (torch.autocast("cpu"), torch.overrides.BaseTorchFunctionMode()):
        with torch.no_grad(), mode:
            assert not any(loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(6))
        assert fits(loaded, model)
    assert not any(loaded.kernels.gated_fits(model, torch.randn(X)) for _ in range(6))  # with gradients
    assert fits(loaded, model)


def test_it_keeps_nothing_alive(loaded) -> None:
    model = refused(loaded, loaded.model.Gated(64), torch.randn(4, 64))
    parts = [weakref.ref(one) for one in (*model.modules(), *model.parameters())]
    del model
    gc.collect()
    assert [one() for one in parts] == [None] * len(parts)
    assert not any(loaded.kernels._refused_in_c.values())
    assert not any(loaded.kernels._refusals.values())


def test_what_changes_at_every_call_is_given_up(loaded, monkeypatch) -> None:
    model, x = loaded.model.Gated(64).eval(), torch.randn(4, 64)
    with torch.no_grad():
        for number in range(12):
            model.up.seen = number
            assert not loaded.kernels.gated_fits(model, x)
        assert not any(loaded.kernels._refused_in_c.values())
        monkeypatch.setattr(loaded.kernels, "_remember_refusal", lambda *_: pytest.fail("tried"))
        assert not loaded.kernels.gated_fits(model, x)
    assert f"_MOST_REFUSED = {loaded.kernels._MOST_REFUSED}  #" in refusals.REFUSALS


SPANS = """
import torch
from torch.nn import functional as F

LOG, SCALE = [], 0.5


# mugraph: x=f32[4, 32], w=f32[32, 32]
def gated(x, w, twice=False):
    LOG.append(twice)
    y = F.silu(x @ w) * x * SCALE
    return y + y if twice else y
"""


def test_functions_without_an_object(tmp_path, load_with_c) -> None:
    path = tmp_path / "spans_model.py"
    path.write_text(SPANS)
    (plan,) = applied(path, "h100")
    loaded, w = load_with_c(path), torch.randn(32, 32)
    test = vars(loaded.kernels)[f"{plan.name}_fits"]
    names = test.__code__.co_varnames[: test.__code__.co_argcount]
    with torch.no_grad():
        for x, answer in ((torch.randn(5, 32), False), (torch.randn(X), True), (torch.randn(5, 32), False)):
            given = {"x": x, "w": w, "twice": False, "F": torch.nn.functional, "SCALE": 0.5}
            assert [test(*[given[name] for name in names]) for _ in range(6)] == [answer] * 6
            assert vars(loaded.kernels)[f"_{plan.name}_refused"](*[given[name] for name in names]) != answer

"""`mugraph.optimize(model, *inputs)` where the model's code is spread over the classes of a library's file."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import mugraph
import pytest
import torch

from tests.engine.api.conftest import Lend
from tests.engine.api.taken import takes_kernels
from tests.support.decorated import DOUBLED

TEXT = """\
import functools

import torch
from torch import nn


def checked(function):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        assert args or kwargs
        return function(self, *args, **kwargs)

    return wrapper


class Part(nn.Module):
    def scaled(self, x, scale):
        return x * scale


class Block(Part):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    @checked
    def forward(self, x, *, scale, **rest):
        h = torch.softmax(super().scaled(x, scale) @ self.weight, dim=-1)
        return x + h @ self.weight


class Stack(nn.Module):
    def __init__(self, width=64, count=2):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(count)])

    @checked
    def forward(self, x, scale=1.0):
        rest, kept = {"more": None}, []
        for block in self.blocks:
            print(end="")
            x = block(x, scale=scale, **rest)
            kept.append(x.shape)
        return x, kept
"""


@pytest.fixture
def lent(lend: Lend) -> ModuleType:
    return lend(lent_model=TEXT)[0]


def test_methods_of_a_librarys_classes(lent: ModuleType, monkeypatch: pytest.MonkeyPatch):
    model, x = lent.Stack().eval(), torch.randn(16, 64)
    with torch.no_grad():
        want, code = model(x, scale=2.0), lent.Block.forward.__wrapped__.__code__
        fast = mugraph.optimize(model, x, scale=2.0)
        assert {region.region.function for region in fast.result.regions} == {"Stack.forward"}
        assert fast.original is model
        changed = lent.Stack.forward.__wrapped__.__code__
        assert "mugraph_kernels" in changed.co_names
        assert lent.Block.forward.__wrapped__.__code__ is code
        torch.testing.assert_close(fast(x, scale=2.0), want)
        torch.testing.assert_close(fast(x[:3], scale=0.5), lent.Stack.forward.__wrapped__(model, x[:3], 0.5))
        assert takes_kernels(lent.mugraph_kernels, lambda: fast(x, scale=2.0), monkeypatch)
        assert not takes_kernels(lent.mugraph_kernels, lambda: fast(x[:8], scale=2.0), monkeypatch)
        more = mugraph.optimize(model, x[:8], scale=2.0)
        assert more.result.regions
        torch.testing.assert_close(more(x, scale=2.0), want)
    kernels = lent.mugraph_kernels
    assert takes_kernels(kernels, lambda: more(x, scale=2.0), monkeypatch)
    assert takes_kernels(kernels, lambda: more(x[:8], scale=2.0), monkeypatch)
    assert len([name for name in vars(kernels) if name.endswith("_fits") and not name.startswith("_")]) >= 2
    assert Path(lent.__file__ or "").read_text() == TEXT


def test_a_file_that_has_changed_since(lent: ModuleType):
    assert lent.__file__ is not None
    Path(lent.__file__).write_text(TEXT.replace("print(end", "print('', end"))
    model = lent.Stack().eval()
    with torch.no_grad(), pytest.raises(TypeError, match="has changed since"):
        mugraph.optimize(model, torch.randn(16, 64), scale=2.0)


PARTS = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x, rotary=None, scale=1.0, *, flag=False):
        if rotary is not None or flag:
            return x
        self.calls = getattr(self, "calls", 0) + 1
        return torch.softmax(x * scale @ self.weight, dim=-1) @ self.weight
"""
WHOLE = """\
from lent_parts import Part
from torch import nn


class Whole(nn.Module):
    def __init__(self, width=64, count=2):
        super().__init__()
        self.parts = nn.ModuleList([Part(width) for _ in range(count)])

    def forward(self, x, seen):
        for part in self.parts:
            y = part(x, scale=2.0)
            seen.append(part)
            x = y
        return x, seen
"""


def test_parts_whose_code_is_in_another_file(lend: Lend, monkeypatch: pytest.MonkeyPatch):
    parts, whole = lend(lent_parts=PARTS, lent_whole=WHOLE)
    model, x, seen = whole.Whole().eval(), torch.randn(16, 64), []
    with torch.no_grad():
        want = model(x, [])[0]
        fast = mugraph.optimize(model, x, seen)
        assert seen == []
        assert [Path(one.path).name for one in fast.results] == ["lent_whole.py", "lent_parts.py"]
        torch.testing.assert_close(fast(x, [])[0], want)
        assert takes_kernels(parts.mugraph_kernels, lambda: fast(x, []), monkeypatch)
    assert not model.parts[0]._forward_hooks
    assert not model.parts[0]._forward_pre_hooks


MIXED = """
import torch
from torch import nn


class Mixed(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        y = x @ self.weight
        return torch.softmax(scaled(y) + scaled.__wrapped__(y), dim=-1) @ self.weight
"""


def test_a_function_that_is_reached_through_its_decorator(lend: Lend, monkeypatch: pytest.MonkeyPatch):
    (lent,) = lend(lent_mixed=DOUBLED + MIXED)
    model, x = lent.Mixed().eval(), torch.randn(16, 64)
    fast = mugraph.optimize(model, x)
    kernels = next(value for name, value in vars(lent).items() if "_mugraph_" in name)
    with torch.no_grad():
        assert takes_kernels(kernels, lambda: fast(x), monkeypatch)
        monkeypatch.setattr(lent.scaled.__wrapped__, "__code__", (lambda x: x.tanh()).__code__)
        assert not takes_kernels(kernels, lambda: fast(x), monkeypatch)

"""`mugraph.optimize(fn, *inputs)`: right on any input, the file untouched."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import mugraph
import pytest
import torch

from tests.engine.api.scores import SCORES
from tests.engine.api.taken import takes_kernels

HEAD = """\
import torch
from torch import nn


def scores(x, w):
    return torch.softmax(x @ w, dim=-1) @ w


def viewed(x, w, seen):
    shape = x.shape[:-1]
    seen.append(shape)
    h = torch.softmax(x @ w, dim=-1) @ w
    return h.view(*shape, 8, -1)


"""
TEXT = HEAD + SCORES


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "user.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "user", module)
    spec.loader.exec_module(module)
    return module


def kernels_of(module: ModuleType) -> ModuleType:
    """What the last replacement in a module calls."""
    return [value for name, value in vars(module).items() if "_mugraph_" in name and isinstance(value, ModuleType)][-1]


def test_kernels_are_taken(user: ModuleType, monkeypatch: pytest.MonkeyPatch):
    x, w = torch.randn(16, 64), torch.randn(64, 64)
    fast = mugraph.optimize(user.scores, x, w)
    assert takes_kernels(kernels_of(user), lambda: fast(x, w), monkeypatch)
    assert not takes_kernels(kernels_of(user), lambda: fast(x[:3], w), monkeypatch)
    module = mugraph.optimize(user.Scores(), x)
    assert takes_kernels(kernels_of(user), lambda: module(x), monkeypatch)
    assert not takes_kernels(kernels_of(user), lambda: module.original(x), monkeypatch)


def test_a_shape_that_was_read_before(user: ModuleType, monkeypatch: pytest.MonkeyPatch):
    x, w = torch.randn(16, 64), torch.randn(64, 64)
    fast = mugraph.optimize(user.viewed, x, w, [])
    assert takes_kernels(kernels_of(user), lambda: fast(x, w, []), monkeypatch)
    assert not takes_kernels(kernels_of(user), lambda: fast(x[:8], w, []), monkeypatch)


def test_function(user: ModuleType):
    x, w = torch.randn(16, 64), torch.randn(64, 64)
    fast = mugraph.optimize(user.scores, x, w)
    assert [region.region.function for region in fast.result.regions] == ["scores"]
    assert fast.original is user.scores
    assert fast.__name__ == "scores"
    torch.testing.assert_close(fast(x, w), user.scores(x, w))
    other = torch.randn(3, 64)
    torch.testing.assert_close(fast(other, w), user.scores(other, w))


def test_module_shares_its_parameters(user: ModuleType):
    module = user.Scores()
    x = torch.randn(16, 64)
    fast = mugraph.optimize(module, x)
    assert fast.result.regions
    with torch.no_grad():
        module.weight.mul_(0.5)
    torch.testing.assert_close(fast(x), module(x))


def test_what_cannot_be_read():
    with pytest.raises(TypeError, match="inside a function"):
        mugraph.optimize(lambda x: x, torch.zeros(1))
    with pytest.raises(TypeError, match="Python function"):
        mugraph.optimize(torch.relu, torch.zeros(1))


def test_importing_mugraph_is_light():
    """The language server imports this package: neither torch nor triton may come with it."""
    code = "import sys, mugraph, mugraph.cli; print(sorted({'torch', 'triton', 'sqlalchemy'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"

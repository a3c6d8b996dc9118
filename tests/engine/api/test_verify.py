"""`mugraph.verify(kernel, reference, *inputs)`: a kernel that somebody wrote, as the program has both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import mugraph
import pytest
import torch

from tests.support.modules import imported

TEXT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x * x + x, mask=i < n)


def launch(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


def reference(x):
    return x * (x + 1)


def other(x):
    return x * (x - 1)
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "user.py"
    path.write_text(TEXT)
    with imported(path, "user") as module:
        yield module


def test_as_often_as_it_is_asked(user: ModuleType):
    """Nothing that a verification imports may stand in the place of the function of the same name."""
    x = torch.randn(300)
    right, wrong = mugraph.verify(user.launch, user.reference, x), mugraph.verify(user.launch, user.other, x)
    assert right
    assert right.reason is None
    assert right.max_rel_error is not None
    assert right.bound is not None
    assert 0 < right.bound <= 1e-9
    assert not wrong
    assert wrong.bound is None
    assert wrong.reason
    assert wrong.where


def test_what_cannot_be_read(user: ModuleType):
    with pytest.raises(TypeError, match="Python function"):
        mugraph.verify(torch.relu, user.reference, torch.zeros(4))

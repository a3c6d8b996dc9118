"""Calls with the type of another device are left to the original."""

from __future__ import annotations

import contextlib

import pytest
import torch

TEXT = """
import torch


def routed(x, w, kind):
    with torch.autocast(kind, enabled=False):
        return torch.softmax(torch.tanh(x @ w) @ w, -1)


# mugraph: x=f32[16, 32], w=f32[32, 32]
def chances(x, w):
    kind = x.device.type
    print(kind)
    return routed(x, w, kind)


# mugraph: x=f32[16, 32], w=f32[32, 32], other=f32[3]
def numbered(x, w, other):
    return torch.softmax(torch.tanh(x @ w) @ w, -1), torch.arange(32, device=other.device.type) * 2.0


# mugraph: x=f32[16, 32], w=f32[32, 32]
def kept(x, w):
    with torch.autocast(x.device.type, torch.bfloat16):
        y = x @ w
        with torch.autocast(x.device.type, enabled=False):
            return torch.softmax(torch.tanh(y.float() @ w) @ w, -1)
"""


@pytest.fixture
def loaded(written, load_with_c):
    return load_with_c(written)


@pytest.mark.parametrize("kind", ["cpu", "cuda", "meta", "xpu", "mps"])
def test_a_type_that_the_program_was_given(loaded, kind) -> None:
    x, w = torch.randn(16, 32), torch.randn(32, 32)
    with torch.no_grad():
        assert loaded.kernels.chances_fits(x, w, kind) is (kind in ("cpu", "cuda"))


def test_another_tensor_is_elsewhere(loaded) -> None:
    x, w = torch.randn(16, 32), torch.randn(32, 32)
    with torch.no_grad():
        assert loaded.kernels.numbered_fits(x, w, torch.randn(3))
        assert not loaded.kernels.numbered_fits(x, w, torch.randn(3, device="meta"))


def test_around_it_autocast_is_on(loaded) -> None:
    x, w = torch.randn(16, 32), torch.randn(32, 32)
    for context, expected in (
        (torch.autocast("cpu"), False), (torch.autocast("cpu", enabled=False), True), (contextlib.nullcontext(), True),
    ):  # fmt: skip
        with torch.no_grad(), context:
            assert loaded.kernels.chances_fits(x, w, "cpu") is expected


def test_inside_it_is_off(loaded, monkeypatch) -> None:
    x, w = torch.randn(16, 32), torch.randn(32, 32)
    taken = []
    monkeypatch.setattr(loaded.kernels, "kept", lambda *given: taken.append(given))
    with torch.no_grad():
        loaded.model.kept(x, w)
    assert len(taken) == 1
    assert {one.dtype for one in taken[0]} == {torch.bfloat16, torch.float32}

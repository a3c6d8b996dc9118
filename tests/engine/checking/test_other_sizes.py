"""Which refused calls are of other sizes than the kernel's, and of nothing else that is other."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from mugraph.recording.inside.mugraph_watcher.guards import Guards
from mugraph.recording.inside.mugraph_watcher.only_sizes import laid_out_alike, other_sizes
from mugraph.recording.inside.mugraph_watcher.read_sizes import read_sizes
from torch import nn

GUARD = """\
import torch
_fitted = []

def norm_fits(self, x, batch, cached):
    return _norm_fits(self, x, batch, cached)

def _norm_fits(self, x, batch, cached):
    try:
        norm = self.norm
        norm_normalized_shape = norm.normalized_shape
        return (
            type(batch) is int and batch == 2
            and cached is None
            and norm_normalized_shape == (64,)
            and norm.eps == 1e-5
            and _norm_tensors_fit(x, norm._parameters['weight'])
        )
    except Exception:
        return False

def _norm_tensors_fit(x, weight):
    if _fit_again(x, weight):
        return True
    return (
        not x.requires_grad
        and x.dtype is torch.float32 and x.shape == (2, 8, 64) and x.stride() == (512, 64, 1)
        and weight.shape == (64,) and weight.stride() == (1,)
        and _fit_from_now(x, weight)
    )

def _fit_again(*tensors):
    return [one.shape for one in tensors] in _fitted

def _fit_from_now(*tensors):
    _fitted.append([one.shape for one in tensors])
    return True
"""


class Model:
    def __init__(self, size: int = 64, eps: float = 1e-5) -> None:
        self.norm: nn.Module = nn.LayerNorm(size, eps=eps)


def asked(*given: object, read: Sequence[str] = ("batch",)) -> tuple[tuple[str, int], ...] | None:
    space: dict[str, Any] = {}
    exec(compile(GUARD, "guard", "exec"), space)
    assert not space["norm_fits"](*given)
    guards = Guards("guard", ast.parse(GUARD))
    found = other_sizes(guards, "norm_fits", space, given, ("self", "x", "batch", "cached"), frozenset(read))
    assert space["_fitted"] == [], "what fits only as if is not remembered"
    assert not space["norm_fits"](*given)
    return found


def test_sizes_and_what_follows_from_them():
    assert asked(Model(), torch.ones(2, 9, 64), 2, None) == (("x.shape[1]", 9),)
    assert asked(Model(), torch.ones(1, 8, 64), 1, None) == (("batch", 1), ("x.shape[0]", 1))
    found = asked(Model(32), torch.ones(2, 8, 32), 2, None)
    assert found == (("x.shape[2]", 32), ("self.norm.weight.shape[0]", 32)), "a module of other sizes"


@pytest.mark.parametrize(
    "given",
    [
        (Model(), torch.ones(2, 9, 64, dtype=torch.float16), 2, None),
        (Model(), torch.ones(9, 2, 64).transpose(0, 1), 2, None),
        (Model(), torch.ones(2, 9, 128)[:, :, ::2], 2, None),
        (Model(), torch.ones(2, 9, 64, requires_grad=True), 2, None),
        (Model(), torch.ones(2, 9, 64), 2, torch.ones(1)),
        (Model(eps=1e-6), torch.ones(2, 9, 64), 2, None),
        (Model(), torch.ones(16, 64), 2, None),
        (Model(), torch.ones(2, 8, 64), 2, torch.ones(1)),
        (Model(), torch.ones(2, 9, 64), True, None),
    ],
    ids=["type", "order", "gaps", "gradient", "argument", "object", "dimensions", "no sizes", "flag"],
)
def test_anything_else_that_differs(given: tuple[object, ...]):
    assert asked(*given) is None


def test_a_number_that_is_no_size():
    """Of an argument, and of a module whose parameters do not have it."""
    assert asked(Model(), torch.ones(1, 8, 64), 1, None, read=()) is None
    model = Model()
    assert isinstance(model.norm, nn.LayerNorm)
    model.norm.normalized_shape = (32,)
    assert asked(model, torch.ones(2, 9, 64), 2, None) is None


@pytest.mark.parametrize(
    ("shape", "strides", "other", "wanted", "alike"),
    [
        ((2, 9, 64), (576, 64, 1), (2, 8, 64), (512, 64, 1), True),
        ((2, 4, 9, 16), (576, 16, 64, 1), (2, 4, 8, 16), (512, 16, 64, 1), True),  # heads of (2, T, 64)
        ((2, 9, 64), (1728, 192, 1), (2, 8, 64), (1536, 192, 1), True),  # a third of (2, T, 192)
        ((2, 9, 64), (1728, 192, 1), (2, 8, 64), (512, 64, 1), False),
        ((1, 64), (1, 1), (8, 64), (64, 1), True),
        ((2, 128, 1, 1), (128, 1, 1, 1), (2, 32, 8, 8), (2048, 64, 8, 1), True),
        ((2, 128, 1, 1), (1, 2, 1, 1), (2, 32, 8, 8), (2048, 64, 8, 1), False),
        ((3, 5, 64), (320, 64, 1), (3, 1, 64), (64, 64, 1), True),
        ((8, 3), (64, 1), (8, 1), (64, 1), False),
        ((9, 64), (1, 9), (8, 64), (64, 1), False),
        ((9, 64), (0, 1), (8, 64), (0, 1), True),
        ((9, 64), (64, 1), (8, 64), (0, 1), False),
    ],
)
def test_layouts(
    shape: tuple[int, ...], strides: tuple[int, ...], other: tuple[int, ...], wanted: tuple[int, ...], alike: bool
):
    assert laid_out_alike(shape, strides, other, wanted) == alike


def test_names_that_are_sizes():
    text = """
def attend(x, kept, heads=4):
    b, t, _ = x.shape
    _ = None
    rows, columns = x.size()[:2]
    length = x.size(1)
    both = b * (length + 1)
    last = t - heads
    twice = x.shape[0]
    twice = 3
    first, rest = kept
    n, _ = kept.shape
    for n in range(3):
        inner = lambda b2: b2
    shape = x.shape
    return kernels.attend_fits(x)
"""
    [function] = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert read_sizes(function) == {"b", "t", "rows", "columns", "length", "both"}

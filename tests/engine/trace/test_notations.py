"""Packages that make calls of PyTorch by a text: what they do is part of a region."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions, only, targets

EINX = """
import torch

_known = {}


def _way(text):
    return _known.setdefault(text, text.split(","))


class Operation:
    def __init__(self, function):
        self.function = function

    def __call__(self, text, *tensors):
        terms = _way(text)
        if len(terms) != len(tensors):
            raise ValueError(text)
        given = [torch.asarray(one) if isinstance(one, float) else one for one in tensors]
        return self.function(torch.reshape(given[0], given[0].shape), *given[1:])


multiply, where = Operation(torch.multiply), Operation(torch.where)
"""
PROGRAM = """
import sys

sys.path.insert(0, {packages!r})
import einx

# mugraph: x=f32[4, 8, 64], w=f32[64, 64], s=f32[64], m=bool[4, 8, 1]
def f(x, w, s, m):
    y = torch.tanh(x @ w)
    y = einx.multiply("b n d, d", y, s)
    y = einx.where("b n d, b n d, ", m, y, 0.0)
    return torch.softmax(y, -1)
"""


def test_einx_is_as_einops_is(tmp_path_factory: pytest.TempPathFactory, regions: Regions) -> None:
    packages = tmp_path_factory.mktemp("packages")  # beside the program's folder, where nothing is the user's
    (packages / "einx").mkdir()
    (packages / "einx" / "__init__.py").write_text(EINX, encoding="utf-8")
    region = only(regions(PROGRAM.format(packages=str(packages))))
    assert region.text.startswith("y = torch.tanh")
    assert {"torch.multiply", "torch.where"} <= set(targets(region))

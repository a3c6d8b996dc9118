"""`mugraph.optimize(model, *inputs)` where the model's parts have their code in several files: what each file gets."""

from __future__ import annotations

from pathlib import Path

import mugraph
import pytest
import torch
from mugraph.edit.inner_calls import by_file

from tests.engine.api.conftest import Lend

PARTS = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return torch.softmax(x @ self.weight, dim=-1) @ self.weight


class Row(nn.Sequential):
    pass


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return (x * self.by).tanh()
"""
SMALL = """\
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return x[:1] * self.by
"""
WHOLE = """\
import torch
from lent_parts import Part, Row, Scale
from lent_small import Small
from torch import nn


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.small, self.scale = Small(), Scale()
        self.parts, self.row = nn.ModuleList([Part(64), Part(1024), Part(1024)]), Row(nn.Linear(64, 64))

    def forward(self, x):
        self.small(x)
        first = self.parts[0](self.row(x))
        y = first.repeat(64, 16)
        for part in self.parts[1:]:
            y = part(y)
        return self.scale(y)
"""


@pytest.fixture
def model(lend: Lend) -> torch.nn.Module:
    _, _, whole = lend(lent_parts=PARTS, lent_small=SMALL, lent_whole=WHOLE)
    return whole.Whole().eval()


def test_of_several_sizes_that_which_is_called_most_is_looked_at(model: torch.nn.Module):
    """With the object that was called so, whichever of its class was seen first."""
    with torch.no_grad():
        parts, small = by_file(model, Path("lent_whole.py"), (torch.randn(16, 64),), {})[1:][::-1]
    called = {call.kind: call for call in parts.calls}
    assert set(called) == {"lent_parts.Part", "lent_parts.Scale"}, "Row's code is PyTorch's"
    part = called["lent_parts.Part"]
    assert isinstance(part.args[0], torch.Tensor)
    assert (part.times, part.args[0].shape) == (2, (1024, 1024))
    assert isinstance(part.origin.module, torch.nn.Module)
    assert part.origin.module.weight.shape == (1024, 1024)
    assert 0 < small.part(()) < parts.part(()) <= 1
    assert parts.part({"lent_parts.Part"}) < parts.part(())
    assert parts.part({"lent_parts.Part", "lent_parts.Scale"}) == 0
    assert set(parts.pictures({"lent_parts.Scale"})) == {"Part.forward"}


def test_what_takes_no_time_is_left_out_and_said(model: torch.nn.Module):
    with torch.no_grad():
        fast = mugraph.optimize(model, torch.randn(16, 64), budget=2, file_budget=20)
    assert [Path(one.path).name for one in fast.results] == ["lent_whole.py", "lent_parts.py"]
    [said] = fast.left_out
    assert "lent_small.py was not searched: its code takes " in said
    assert said in fast.report()
    assert "Part.forward" in fast.report()
    assert repr(fast).startswith("<mugraph.Optimized Whole: ")
    assert "(estimated)" in repr(fast)


PADDED = """\
import torch.nn.functional as F
from torch import nn


class Padded(nn.Module):
    def forward(self, x):
        return F.pad(x, (2, 2), mode="reflect").argsort(-1)


class Unused(nn.Module):
    def forward(self, x):
        return x * 2 + 1
"""


def test_why_a_file_has_no_region_is_said(lend: Lend):
    """Beside code without shapes that nothing has called, which is not said to need some."""
    [padded] = lend(lent_padded=PADDED)
    with torch.no_grad():
        fast = mugraph.optimize(padded.Padded().eval(), torch.randn(4, 32, 4096), budget=2, file_budget=20)
    assert [one.regions for one in fast.results] == [()]
    [said] = fast.left_out
    assert said.endswith(
        "lent_padded.py: Padded.forward has no region: torch.nn.functional.pad in line 7 and Tensor.argsort in line 7 "
        "are kernels of PyTorch's own, and nothing else is computed in it"
    )
    assert said in fast.report()


WEIGHING = """\
import torch
from torch import nn


class Weighing(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.mT / 8, dim=-1) @ v
"""
WEIGHED = """\
import torch
from lent_weighing import Weighing
from torch import nn


class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.weighing = nn.Linear(64, 192), Weighing()

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        out = self.weighing(*self.project(x).chunk(3, dim=-1))
        self.calls += out.dim()
        return out
"""


def test_parts_without_parameters_are_searched(lend: Lend):
    """As attention often is, beside the projections."""
    _, weighed = lend(lent_weighing=WEIGHING, lent_weighed=WEIGHED)
    with torch.no_grad():
        found = by_file(weighed.Weighed().eval(), Path("lent_weighed.py"), (torch.randn(4, 256, 64),), {})
    [other] = [one for one in found if one.origin.path.name == "lent_weighing.py"]
    assert set(other.pictures(())) == {"Weighing.forward"}
    assert other.parts["lent_weighing.Weighing"] > 0

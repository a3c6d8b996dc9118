"""Where there is no region in a function, the report says what it consists of."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.trace.regions.partition import MAX_CALLS
from mugraph.trace.report import in_other_files

TEXT = """
# mugraph: x=f32[4, 8, 16]
def running(x):
    y = torch.cumprod(x, dim=1)
    return y.transpose(1, 2)


# mugraph: x=f32[2, 3, 8, 8]
def turned(x):
    x = torch.rot90(x, 1, (2, 3))
    return torch.flip(torch.rot90(x, 1, (2, 3)), (1,))


# mugraph: x=f32[4, 8]
def viewed(x):
    return x.t()


# mugraph: x=f32[4, 8]
def both(x):
    return torch.softmax(torch.cumprod(x, dim=1), -1) * 2.0


class Model(nn.Module):
    # mugraph: x=f32[4, 8]
    def forward(self, x):
        return both(x)
"""


def test_it_is_said(trace) -> None:
    found = trace(TEXT)
    lines = TEXT.splitlines()
    begin = 6  # after the imports
    first, second = (begin + next(at for at, line in enumerate(lines) if name in line) for name in ("cumprod", "rot90"))
    alone = "of PyTorch's own, and nothing else is computed in it"
    turns = f"torch.rot90 in lines {second}, {second + 1} and torch.flip in line {second + 1}"
    assert found.notices == (
        f"running has no region: torch.cumprod in line {first} is a kernel {alone}",
        f"turned has no region: {turns} are kernels {alone}",
    )
    assert {region.function for region in found.regions} == {"both", "Model.forward"}


@pytest.mark.parametrize("name", ["both", "Model.forward", "viewed"])
def test_nothing_is_said_of_others(trace, name) -> None:
    assert trace(TEXT, qualname=name).notices == ()


REFUSED = """
# mugraph: x=f16[16, 64], w=f16[64, 64], cache=f16[16, 8, 64], place=3
def one(x, w, cache, place):
    def inner():
        cache[:, place] = torch.relu(x @ w)
        return torch.relu(x @ w) + cache.sum(1)
    return inner()


# mugraph: x=f16[16, 64], w=f16[64, 64]
def two(x, w):
    y = torch.relu(x @ w)
    length = (x @ w).shape[0]
    return y * length


# mugraph: x=f16[16, 64], w=f16[64, 64], cache=f16[16, 8, 64], place=3
def three(x, w, cache, place):
    y = torch.relu(x @ w) * 2
    y = both(y, w, cache, place)
    return torch.softmax(y @ w, -1)


both = helper.both
"""
HELPER = """
import torch


def both(x, w, cache, place):
    cache[:, place] = torch.relu(x @ w)
    return torch.relu(x @ w) + cache.sum(1)
"""


def test_why_code_is_left_out_beside_regions(trace, tmp_path: Path) -> None:
    """It is said of a line that is in no region; not where parts of it are regions."""
    (tmp_path / "helper.py").write_text(HELPER)
    found = trace("import helper\n" + REFUSED)
    lines = ("import helper\n" + REFUSED).splitlines()
    line = 5 + next(at for at, text in enumerate(lines, 1) if "y = both" in text)  # after the imports
    moving = "writes to a place that a number says, which may be another one next time"
    assert f"three, line {line}, has no region: it {moving}" in found.notices
    assert not [said for said in found.notices if said.startswith(("two", "one"))]


INHERITED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2.0, -1)
"""
MODEL = """
class Model(Scaled):
    pass


def get_inputs():
    return [torch.rand(4, 8)]
"""


def test_a_model_whose_code_is_inherited(trace) -> None:
    found = trace(INHERITED + MODEL)
    assert [region.function for region in found.regions] == ["Scaled.forward"]


def test_a_model_whose_code_is_in_another_file(trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scaled.py").write_text(INHERITED)
    monkeypatch.chdir(tmp_path)
    found = trace("from scaled import Scaled\n" + MODEL)
    (said,) = in_other_files(found)
    other = tmp_path / "scaled.py"
    assert said == (
        "the run of program.py finds 1 region in scaled.py (Scaled.forward, line 7), which is searched there: "
        f"mugraph optimize {other} --called-from {tmp_path / 'program.py'}"
    )
    assert found.elsewhere == {str(other): ("Scaled.forward, line 7",)}
    other.write_text(INHERITED.replace("torch.softmax(x * 2.0, -1)", "x.t()"))
    (said,) = trace("from scaled import Scaled\n" + MODEL).notices
    assert said == "Model.forward runs no code of this file: it is in scaled.py, line 6, where there is no region"


LIBRARYS = """
class Encoded(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(64, 64)

    # mugraph: x=f32[2, 16, 64]
    def forward(self, x):
        x = torch.relu(x * 2) + 1
        x = self.encoder(x)
        return torch.relu(self.head(x)) * 2


class Few(Encoded):
    def __init__(self):
        super().__init__(layers=1)

    # mugraph: x=f32[2, 16, 64]
    def forward(self, x):
        x = self.encoder(x)
        return torch.relu(self.head(x)) * 2


# mugraph: x=f32[2, 16, 64], w=f32[192, 64], b=f32[192], v=f32[64, 64], c=f32[64]
def attended(x, w, b, v, c):
    x = torch.relu(x * 2) + 1
    y, _ = F.multi_head_attention_forward(
        x, x, x, 64, 4, w, b, None, None, False, 0.1, v, c, training=True, need_weights=False
    )
    for _ in range(3):
        y = torch.relu(F.dropout(y @ v, training=True) @ v) * 2
    return y
"""


def test_a_line_in_which_a_library_does_much_is_said(trace) -> None:
    lines = LIBRARYS.splitlines()
    attention = 6 + lines.index("    y, _ = F.multi_head_attention_forward(")
    found = trace(LIBRARYS)
    assert {region.function for region in found.regions} == {"Encoded.forward", "Few.forward", "attended"}
    (said,) = found.notices
    assert said == (
        f"attended, line {attention}, has no region: torch.nn.functional.scaled_dot_product_attention, which it calls, "
        "is no part of one (random (dropout))"
    )


def test_what_a_library_does_is_one_region_as_it_cannot_be_taken_apart(trace) -> None:
    found = trace(LIBRARYS)
    assert any(region.function == "Encoded.forward" and len(region.calls) > MAX_CALLS for region in found.regions)


DEEP = """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Linear(8, 8) for _ in range(1100)])

    # mugraph: x=f32[16, 8]
    def forward(self, x):
        x = torch.relu(x * 2) + 1
        x = self.body(x)
        return torch.relu(x) * 2
"""


@pytest.mark.more
def test_what_is_too_much_for_a_region_is_said(trace) -> None:
    (said,) = trace(DEEP).notices
    assert "has no region: a library's code makes 1100 calls of PyTorch's in it, and a region has 1024 at most" in said


ELEMENTS = """
SCALES = [0.5, 2.0, 3.0]

# mugraph: rows=f32[16, 8]
def each(rows):
    listed = [
        torch.tanh(rows * scale) * scale
        for scale in SCALES
    ]
    return listed


# mugraph: rows=f32[16, 8]
def one_call(rows):
    return [torch.cumprod(rows, dim=at) for at in (0, 1)]
"""


def test_elements_of_a_comprehension_are_said_to_have_none(trace) -> None:
    line = 6 + ELEMENTS.splitlines().index("    listed = [")
    first, second = trace(ELEMENTS).notices
    assert first.startswith(f"each has no region: all is computed in the comprehension in line {line},")
    assert "a kernel of PyTorch's own" in second


STORING = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.rows = x.shape[0]
        return torch.softmax(x @ w, -1) @ w
"""
STORES = """
# mugraph: x=f32[16, 64], w=f32[64, 64]
def with_a_function(x, w):
    x = torch.relu(x * 2) + 1
    y = stored.Scaled.apply(x, w)
    return torch.relu(y) * 2

"""


def test_a_statement_that_no_region_may_have_is_told_by_its_line(trace, tmp_path: Path) -> None:
    (tmp_path / "stored.py").write_text(STORING)
    found = trace("import stored\n" + STORES)
    lines = ("import stored\n" + STORES).splitlines()
    call = 5 + next(at for at, text in enumerate(lines, 1) if "apply(" in text)
    storing = 1 + STORING.splitlines().index("        ctx.rows = x.shape[0]")
    why = "which it runs, is no part of one (stores to an attribute or item)"
    assert f"with_a_function, line {call}, has no region: line {storing} of stored.py, {why}" in found.notices
    assert not any("statement, which" in said for said in found.notices)

"""A part of the campaign over whole files: `python -m tests.trust.whole_programs` runs more."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.trust.whole_programs import hidden_writes
from tests.trust.whole_programs.files import drawn
from tests.trust.whole_programs.head import HEAD
from tests.trust.whole_programs.way import outcome

FEW = range(3)
MORE = range(3, 12)
NAMES_OF_ALL_LETTERS = f"""{HEAD}

# mugraph: größe=f32[4, 8], w=f32[8, 8]
def größer(größe, w):
    wärme = torch.tanh(größe @ w)
    Δ = wärme * 2 + größe
    return wärme, Δ.softmax(-1)


# mugraph: 漢=f32[4, 8]
class Überall(nn.Module):
    def __init__(self):
        super().__init__()
        self.µ = nn.Linear(8, 8)

    def forward(self, 漢):
        return torch.tanh(self.µ(漢)) + 漢.mean(-1, keepdim=True)
"""
BETWEEN_WHOLE_WORDS = f"""{HEAD}

# mugraph: x=bf16[4, 6], w=bf16[3, 8]
def halves(x, w):
    part = x.chunk(2, dim=-1)[1]
    NOTES.append(part.shape)
    return torch.tanh(part @ w) * 2


# mugraph: x=f32[4, 9], b=f32[8]
def tail(x, b):
    rest = x[..., 1:]
    NOTES.append("here")
    return (rest * b).softmax(-1), rest.mean(-1)


# mugraph: z=f32[3, 5, 7]
def second(z):
    one = z[1]
    NOTES.append("here")
    return torch.tanh(one) + one.sum(-1, keepdim=True)


# mugraph: x=f32[6, 7]
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(7, 7)

    def forward(self, x):
        outs = []
        for row in x.unbind(0):
            NOTES.append("row")
            outs.append(torch.sigmoid(self.proj(row)) * row)
        return torch.stack(outs)


# mugraph: x=f32[6, 7], y=f32[7]
def walked(x, y):
    outs = []
    for i in range(6):
        NOTES.append(i)
        outs.append(torch.sigmoid(x[i] * y) + y)
    return torch.stack(outs)
"""


@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.more) for seed in MORE)])
def test_drawn_file(seed: int, tmp_path: Path, forks: None) -> None:
    made = outcome(drawn(seed), tmp_path)
    assert made.kind in ("", "idle"), made


@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.more) for seed in MORE)])
def test_drawn_file_with_hidden_writes(seed: int, tmp_path: Path, forks: None) -> None:
    made = outcome(hidden_writes.drawn(seed), tmp_path)
    assert made.kind in ("", "idle"), made
    assert made.regions


def test_names_of_all_letters(tmp_path: Path, forks: None) -> None:
    made = outcome(NAMES_OF_ALL_LETTERS, tmp_path)
    assert made.kind == "", made
    assert made.regions == 2


def test_views_that_begin_between_whole_words(tmp_path: Path, forks: None) -> None:
    """Kernels run on what does not begin at a multiple of 16 bytes where the program was traced."""
    made = outcome(BETWEEN_WHOLE_WORDS, tmp_path)
    assert made.kind == "", made
    assert made.regions == 5


def test_files_are_of_many_kinds() -> None:
    """The same seed gives the same file, and statements of all kinds are drawn."""
    texts = [drawn(seed) for seed in range(60)]
    assert texts[3] == drawn(3)
    kinds = {type(node) for text in texts for node in ast.walk(ast.parse(text.removeprefix(HEAD)))}
    wanted = (ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.Lambda, ast.NamedExpr, ast.AugAssign, ast.IfExp,
              ast.ListComp, ast.Starred, ast.FunctionDef, ast.ClassDef, ast.Assert, ast.Delete,
              ast.Global, ast.Yield)  # fmt: skip
    assert kinds.issuperset(wanted), [kind.__name__ for kind in wanted if kind not in kinds]

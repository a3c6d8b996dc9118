"""The cheap look at a text: what matters, what is broken, and what leaves its meaning as it is."""

from __future__ import annotations

import asyncio

import pytest
from mugraph_server.relevance import can_matter, look, look_apart

from tests.server.support.texts import IMPROVED


@pytest.mark.parametrize(
    ("text", "matters"),
    [
        (IMPROVED, True),
        ("from torch import nn\nclass A(nn.Module):\n    def forward(self, x): return x\n", True),
        ("import os, torch.nn as nn\ndef f(): ...\n", True),
        ("if True:\n    import torch\ndef f(): ...\n", True),
        ("import torch\nx = 1\n", False),
        ("# import torch\ndef f(): ...\n", False),
        ("import torchlight\ndef f(): ...\n", False),
        ("import os\ndef f(): ...\n", False),
        ('"""GPU kernels for a.py written by mugraph 1."""\nimport torch\ndef f(): ...\n', False),
        ("", False),
    ],
)
def test_what_matters(text: str, matters: bool) -> None:
    assert look(text).matters == matters


@pytest.mark.parametrize("text", ["import torch\ndef f(:\n", "import torch\n\0", "import torch\n" + "(" * 5_000])
def test_broken_code_says_why(text: str) -> None:
    found = look(text)
    assert not found.matters
    assert found.error


def test_broken_code_without_torch_is_none_of_our_business() -> None:
    assert look("def f(:").error == ""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("import torch\n", "import torch\n\n# words\n", True),
        ("relu(x)", "relu( x )", True),
        ("@ x\n", "@ x\n\n# the end\n", True),
        ("def f", "\n\n\ndef f", False),  # the shapes stand above an empty line now
        ("16, 4096", "8, 4096", False),
        ("relu", "silu", False),
        ("# mugraph:", "# nothing:", False),
    ],
)
def test_the_fingerprint(old: str, new: str, same: bool) -> None:
    changed = IMPROVED.replace(old, new)
    assert changed != IMPROVED
    assert (look(changed).fingerprint == look(IMPROVED).fingerprint) is same


def test_apart_it_finds_the_same() -> None:
    for text in (IMPROVED, "import torch\ndef f(:\n", "x = '\ud800'\nimport torch\n", "import os"):
        assert asyncio.run(look_apart(text)) == look(text)


def test_heads_are_where_lenses_will_be() -> None:
    text = "import torch\n# mugraph: x=f16[2]\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    assert look(text).heads == (3,)
    text = "import torch\n\nclass A:\n    # mugraph: x=f16[2]\n\n    width = 2\n    def forward(self, x): pass\n"
    text += "def f(\n    x,\n):\n    # mugraph: x=f16[2]\n    return x\n"
    assert look(text).heads == (6, 7)
    assert can_matter(text)

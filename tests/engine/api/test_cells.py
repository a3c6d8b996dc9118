"""`mugraph.optimize` of what is defined in a notebook's cells, which stands in no file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """\
import mugraph, torch
import torch.nn.functional as functional
from torch import nn
from tests.support.interpreted import taken
"""
SHARPNESS = "SHARPNESS = 3.0\nNOTES = {'kept': [1, 2]}\n"
WEIGHED = """\
# a cell of its own
def weighed(h, gain):
    return functional.softmax(h * SHARPNESS, dim=-1) * gain
"""
PARTS = """\
class Mixer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.into = nn.Linear(size, size, bias=False)
        self.gain = nn.Parameter(torch.rand(size))

    def forward(self, h):
        return weighed(self.into(h), self.gain)
"""
NET = """\
class Net(nn.Module):
    def __init__(self, size=64, depth=2):
        super().__init__()
        self.mixers = nn.ModuleList(Mixer(size) for _ in range(depth))
        self.depth = depth

    def forward(self, h):
        for mixer in self.mixers:
            print(end="")
            h = h + mixer(h)
        return h
"""
CALLED = """\
net, h = Net().eval(), torch.randn(16, 64)
with torch.no_grad():
    want = net(h)
    fast = mugraph.optimize(net, h, budget=1)
    print(fast)
    print(taken(lambda: torch.testing.assert_close(fast(h), want)))
"""
AGAIN = """
with torch.no_grad():
    print(taken(lambda: torch.testing.assert_close(fast(h), {want})))
"""


def printed(folder: Path, *cells: str, status: int = 0) -> tuple[list[str], str]:
    """What the cells print, and the last line of standard error."""
    (folder / "cells.json").write_text(json.dumps(cells))
    command = [sys.executable, "-m", "tests.support.cells", str(folder / "cells.json")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=Path(__file__).parents[3])
    assert ran.returncode == status, ran.stderr
    return ran.stdout.splitlines(), (ran.stderr.splitlines() or [""])[-1]


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def test_a_model_of_several_cells(tmp_path: Path) -> None:
    """Then a function it calls is changed in a later cell, and changed back: the kernel is taken for what it was made
    of alone."""
    changed = WEIGHED.replace("* gain", "- gain")
    said, _ = printed(
        tmp_path, HEAD, SHARPNESS, WEIGHED, PARTS, NET, "raise_if_run_again = 1\nassert 'fast' not in globals()\n",
        CALLED,
        changed + AGAIN.format(want="net(h)"), WEIGHED + AGAIN.format(want="want"),
        "SHARPNESS = 2.0\n" + AGAIN.format(want="net(h)"),
    )  # fmt: skip
    assert said[0].startswith("<mugraph.Optimized Net: kernels for 1 of 1 region")
    assert said[1:] == ["2", "0", "2", "0"]


MADE = """\
import dataclasses, functools

def announced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

squashed = lambda t: functional.softmax(t, dim=-1)  # noqa: E731

@dataclasses.dataclass
class Setting:
    scale: float = 2.0
    size: int = 32

DEFAULT = Setting()

@announced
def scored(t, w, setting=DEFAULT):
    return squashed(t @ w * setting.scale) @ w

also = scored
t, w = torch.randn(8, 32), torch.randn(32, 32)
quick, want = mugraph.optimize(also, t, w, budget=1), torch.softmax(t @ w * 2.0, -1) @ w
print(quick)
print(taken(lambda: torch.testing.assert_close(quick(t, w), want, atol=1e-4, rtol=1e-4)))
again, rows = mugraph.optimize(also, t[:3], w, budget=1), want[:3]
print(taken(lambda: torch.testing.assert_close(again(t[:3], w), rows, atol=1e-4, rtol=1e-4)))
print(taken(lambda: torch.testing.assert_close(again(t, w), want, atol=1e-4, rtol=1e-4)))
"""
FROM_HERE = {"metadata": {"path": str(Path(__file__).parents[3])}}
NOTHING_KEPT = (
    "the source of {} is not there: of what was typed into Python itself or made by exec, nothing is kept; "
    "define it in a file, a notebook or IPython"
)
REFUSED = """\
def refused(what, *given):
    try:
        mugraph.optimize(what, *given)
    except TypeError as error:
        print(error)

old = Setting
class Holder(nn.Module):
    def forward(self, t):
        return squashed(t)
holder = Holder()
class Holder(nn.Module):
    def forward(self, t):
        return squashed(t) + 1.0
refused(holder, t)
made = {}
exec("def typed(t):\\n    return t.softmax(-1)\\n", globals())
refused(typed, t)
if True:
    def hidden(t):
        return squashed(t)
refused(hidden, t)
"""


def test_functions_and_what_cannot_be_found(tmp_path: Path) -> None:
    """A decorator, a lambda, a dataclass and its object, in the cell that imports; then other inputs. Another class of
    the name; code without source."""
    said, _ = printed(tmp_path, HEAD + MADE, REFUSED)
    assert said[0].startswith("<mugraph.Optimized scored: kernels for 1 of 1 region")
    assert said[1:] == [
        "1",
        "1",
        "1",
        "Holder was defined again after this object was made; make the object anew",
        NOTHING_KEPT.format("typed"),
        "hidden is defined inside another statement; move it to the level of its cell",
    ]


def test_typed_into_python_itself(tmp_path: Path) -> None:
    text = "import mugraph, torch\ndef f(x): return x.softmax(-1)\n\nmugraph.optimize(f, torch.ones(3))\n"
    ran = subprocess.run([sys.executable, "-i"], input=text, capture_output=True, text=True, timeout=100)
    lines = [line for line in ran.stderr.splitlines() if line.startswith("TypeError")]
    assert lines == [f"TypeError: {NOTHING_KEPT.format('f')}"]


def test_a_notebook(tmp_path: Path) -> None:
    """A real one, run by a kernel of Jupyter's."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [HEAD, SHARPNESS, WEIGHED, PARTS]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(text) for text in [*cells, "%%time\n" + NET, CALLED]]
    )
    client.NotebookClient(notebook, timeout=200, kernel_name="python3", resources=FROM_HERE).execute()
    said = "".join(
        one.get("text", "") for one in notebook.cells[-1].outputs if one.get("name") == "stdout"
    ).splitlines()
    assert said[0].startswith("<mugraph.Optimized Net: kernels for 1 of 1 region")
    assert said[1] == "2"

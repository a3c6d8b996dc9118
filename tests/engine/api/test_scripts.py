"""Scripts that call `mugraph.optimize` where they stand, under no `if __name__ == "__main__"`: tracing runs them again,
up to that call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.api.scores import SCORES

HEAD = """\
import os
import sys

import mugraph
import torch
from torch import nn

"""
FUNCTION = """\
def scores(x, w):
    return torch.softmax(x @ w, dim=-1) @ w


inputs = torch.randn(16, 64), torch.randn(64, 64)
"""
CALL = """\
print("before")
fast = mugraph.optimize(scores, *inputs, budget=1)
print(repr(fast))
torch.testing.assert_close(fast(*inputs), scores(*inputs))
"""
MODEL = (
    SCORES
    + """

model = Scores().eval()
quick = mugraph.optimize(model, inputs[0], budget=1)
print(repr(quick))
with torch.no_grad():
    torch.testing.assert_close(quick(inputs[0]), model(inputs[0]))
"""
)
NO_GPU = """\
if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
    raise RuntimeError("no GPU is seen where the file is traced")
"""
FOUND = "kernels for 1 of 1 region"


def printed(folder: Path, *parts: str, argument: str = "", monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(folder / "cache"))
    (folder / "script.py").write_text(HEAD + "\n\n".join(parts))
    command = [sys.executable, "script.py", argument]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines(), ran.stderr


def test_what_stands_after_the_call_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    once = "with open('ran', 'a') as ran:\n    ran.write('once ')\n"
    said, _ = printed(tmp_path, FUNCTION, CALL, once, MODEL, once, monkeypatch=monkeypatch)
    assert said[0] == "before"
    assert [FOUND in line for line in said[1:]] == [True, True]
    # The second call's run goes past the first call, which is for another function
    assert (tmp_path / "ran").read_text() == "once once once "


def test_what_the_tracing_process_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A script that has put its tensors on a GPU by then."""
    said, _ = printed(tmp_path, FUNCTION, NO_GPU, CALL, monkeypatch=monkeypatch)
    assert FOUND in said[-1]


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On standard error: nothing where that is no terminal, if it is not asked for."""
    call = CALL.replace("budget=1", "budget=1, progress=sys.argv[-1] == 'on' or None")
    said, progress = printed(tmp_path, FUNCTION, call, argument="on", monkeypatch=monkeypatch)
    assert "region 1: improved" in progress
    assert progress.splitlines()[-1] == said[-1]
    assert printed(tmp_path, FUNCTION, call, argument="as it is", monkeypatch=monkeypatch)[1] == ""

"""A program that compiles nothing does not import PyTorch's compiler because of its kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.edit.apply import apply_files

ASKED = ("_tested_gpu", "_right_here", "_same_code", "_find_file", "_unchanged", "_inside", "_takes_tf32", "_is_the")
PROGRAM = """\
import sys, torch
import gated_model
kernels = sys.modules["gated_model_mugraph"]
with torch.no_grad():
    gated_model.Gated().eval()(torch.randn(4, 8))
print("torch._dynamo" in sys.modules, [vars(getattr(kernels, name)) for name in {asked}])
model = torch.compile(gated_model.Gated().eval(), fullgraph=True, backend="eager")
with torch.no_grad():
    print(tuple(model(torch.randn(4, 8)).shape))
"""


@pytest.fixture
def folder(gated_file: Path, maker, source, part) -> Path:
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    return gated_file.parent


def test_the_compiler_is_imported_where_it_is_used(folder: Path) -> None:
    """And then it knows which functions it is to ask, though it came after the kernels."""
    program = PROGRAM.format(asked=ASKED)
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said, shape = run.stdout.splitlines()
    assert said == f"False {[marked()] * len(ASKED)}"
    assert shape == "(4, 16)"


def marked() -> dict[str, object]:
    """What PyTorch's own decorator sets."""

    @torch.compiler.assume_constant_result
    def one() -> int:
        return 1

    return vars(one)


def test_where_pytorch_does_more_than_mark_it_is_asked(
    folder: Path, load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A version whose decorator is another one."""
    kernels: ModuleType = load(folder / "gated_model.py").kernels
    assert kernels._only_marked()
    asked: list[object] = []
    monkeypatch.setattr(torch.compiler, "assume_constant_result", lambda function: asked.append(function) or function)
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    assert not kernels._only_marked(), "there is no such file"
    (tmp_path / "_dynamo").mkdir()
    (tmp_path / "_dynamo" / "decorators.py").write_text(
        "\n\ndef assume_constant_result(fn):\n    fn._dynamo_marked_constant = True\n    register(fn)\n    return fn\n"
    )
    assert not kernels._only_marked()
    monkeypatch.setattr(kernels, "_mark_only", False)
    assert kernels._constant(marked) is marked
    assert asked == [marked]

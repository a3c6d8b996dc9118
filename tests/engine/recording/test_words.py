"""Why a guard says no, in the words of the file that asks it."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mugraph.recording.inside.mugraph_watcher.guards import Guards
from mugraph.recording.inside.mugraph_watcher.instrument import Question, is_generated
from mugraph.recording.inside.mugraph_watcher.sentences import sentence

KERNELS = """\
import torch

_KINDS = (torch.Tensor, torch.nn.Parameter)
_TENSOR, _PARAMETER = _KINDS

def norm_fits(input_2, targets):
    return _norm_tensors_fit(input_2, targets)

def _norm_tensors_fit(input_2, targets):
    return _runs_here(input_2, targets) and input_2.shape == (2, 3)

def _runs_here(*tensors):
    for tensor in tensors:
        kind = type(tensor)
        if kind is not _PARAMETER and kind is not _TENSOR:
            return False
    return True

_REVERT = {
    "file": "model.py",
    "regions": [{"anchor": "kernels.norm_fits("}],
}
"""
MODEL = """\
def norm(input, labels=None):
    if kernels.norm_fits(input, labels):
        return 1
"""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((torch.ones(4, 3), torch.ones(1)), "input has 4 rows, the kernel is for 2"),
        ((torch.ones(2, 3), None), "labels is None, the kernel is for a tensor"),
        ((torch.ones(2, 3), 3), "labels is an int, the kernel is for a tensor"),
    ],
)
def test_why(tmp_path: Path, given: tuple[object, ...], why: str):
    path = tmp_path / "model_mugraph.py"
    path.write_text(KERNELS)
    (tmp_path / "model.py").write_text(MODEL)
    regions = is_generated(path.read_bytes(), str(path))
    assert regions == {"norm": Question(("input", "labels"))}
    space: dict[str, object] = {}
    exec(compile(KERNELS, str(path), "exec"), space)
    refusal = Guards(str(path), ast.parse(KERNELS)).refusal("norm_fits", space, given, regions["norm"].words)
    assert refusal is not None
    assert sentence(refusal) == why


PARTS = """\
def stage_fits(self):
    return self.mask.shape == (3,) and type(self.downsample[0]) is int and self.size == (64,)
_REVERT = {"file": "model.py", "regions": []}
"""


@pytest.mark.parametrize(
    ("downsample", "size", "why"),
    [
        (None, (64,), "self.mask is None, the kernel is for a tensor"),
        (torch.nn.Identity(), (64,), "self.downsample is an Identity, which has no parts"),
        ([0], (32,), "self.size is (32,), the kernel is for (64,)"),
    ],
)
def test_why_of_parts(downsample: object, size: tuple[int], why: str):
    space: dict[str, object] = {}
    exec(compile(PARTS, "parts", "exec"), space)
    mask = torch.ones(3) if downsample is not None else None
    given = SimpleNamespace(mask=mask, downsample=downsample, size=size)
    refusal = Guards("parts", ast.parse(PARTS)).refusal("stage_fits", space, (given,))
    assert refusal is not None
    assert sentence(refusal) == why

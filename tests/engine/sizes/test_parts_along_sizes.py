"""Rows that are joined to a tensor of any length, and parts of one along the axis whose size varies: read inside of the
kernel, proved for all sizes, right at sizes that no test has drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.sizes.proved import varying_of
from mugraph.triton_text.ranges.check import check_ranges

from tests.engine.sizes.solving import Found, is_refused, run_beside, solved

CODE = """\
import torch
import torch.nn.functional as F


# mugraph: t=2..300, x=f32[3, t, 64]
def steps(x):
    d = x[:, 1:] - x[:, :-1]
    return (d * d).mean(-1)


# mugraph: t=1..200, prompt=f32[3, 7, 64], x=f32[3, t, 64], w=f32[64]
def prompted(prompt, x, w):
    return F.rms_norm(torch.cat((prompt, x), dim=1), (64,), w)


# mugraph: s=1..250, q=f32[2, 2, 64], cache=f32[2, s, 64], k=f32[2, 3, 64], stored=f32[2, s, 32], v=f32[2, 3, 32]
def decode(q, cache, k, stored, v):
    keys, values = torch.cat((cache, k), dim=1), torch.cat((stored, v), dim=1)
    return torch.softmax(q @ keys.mT * 0.125, dim=-1) @ values
"""
SHAPES = {
    "steps": "x=(3, n, 64)",
    "prompted": "prompt=(3, 7, 64), x=(3, n, 64), w=(64,)",
    "decode": "q=(2, 2, 64), cache=(2, n, 64), k=(2, 3, 64), stored=(2, n, 32), v=(2, 3, 32)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "code_.py").write_text(CODE)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> Found:
    return solved(folder / "code_.py", SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_read_inside_of_the_kernel(found: Found, name: str) -> None:
    program, source, _ = found[name]
    assert all(kernel.library is None for kernel in source.every)
    assert any(tensor.windows for tensor in program.tensors)
    assert parse_program(format_program(program)) == program
    verdict = check_ranges(program, source, varying_of(program))
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_right_at_other_sizes(found: Found, folder: Path, name: str) -> None:
    sizes = [2, 3, 8, 41, 200] if name == "steps" else [1, 2, 5, 29, 64, 187]
    run_beside(folder / "code_.py", name, found, SHAPES[name], str(sizes), "n")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("steps", " + 1) * ", ") * "),
        ("steps", " + 1) * ", " + 2) * "),
        ("steps", "x_ptr + 64 +", "x_ptr +"),
        ("steps", "x_ptr + 64 +", "x_ptr + 128 +"),
        ("prompted", " - 7", " - 6"),
        ("prompted", " - 7", " - 8"),
        ("prompted", "< 7)", "< 8)"),
        ("prompted", ">= 7)", ">= 6)"),
        ("decode", " - 3", " - 2"),
        ("decode", " - 3", " - 4"),
        ("decode", "shape[1] + 3", "shape[1] + 4"),
    ],
)
def test_another_seam_is_refused(found: Found, name: str, old: str, new: str) -> None:
    """By z3 where something outside of a tensor is read, by what the text computes where another place is."""
    (axis,) = found[name][0].least
    assert is_refused(found[name], old, new, {axis: 33})

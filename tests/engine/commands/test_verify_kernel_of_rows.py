"""`mugraph verify --kernel`: a kernel that looks rows up by an index, as people write them for a mixture of experts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.cli import run as command

TEXT = """\
import torch
import triton
import triton.language as tl


# mugraph: x=f16[2, 32], w=f16[6, 48, 32], picks=i64[2, 3]
def experts(x, w, picks):
    return torch.einsum("ti,taoi->tao", x, w[picks])


# mugraph: x=f16[2, 32], w=f16[6, 48, 32], picks=i64[2, 3]
def selected(x, w, picks):
    return torch.einsum("ti,taoi->tao", x, w.index_select(0, picks.view(-1)).view(2, 3, 48, 32))


@triton.jit
def kernel(x_ptr, w_ptr, picks_ptr, out_ptr, A: tl.constexpr, O: tl.constexpr, I: tl.constexpr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    pair = tl.program_id(1)
    e = tl.load(picks_ptr + pair)
    e = tl.where(e < 0, e + 6, e)
    i = tl.arange(0, I)
    w = tl.load(w_ptr + e * O * I + o[:, None] * I + i[None, :]).to(tl.float32)
    x = tl.load(x_ptr + (pair // A) * I + i).to(tl.float32)
    tl.store(out_ptr + pair * O + o, tl.sum(w * x[None, :], axis=1).to(tl.float16))


def launch(x, w, picks):
    t, a = picks.shape
    out = torch.empty((t, a, w.shape[1]), device=x.device, dtype=x.dtype)
    kernel[(w.shape[1] // 16, t * a)](x, w, picks, out, A=a, O=w.shape[1], I=w.shape[2], B=16)
    return out
"""


def verdict(folder: Path, capsys: pytest.CaptureFixture[str], text: str, beside: str = "experts") -> dict[str, object]:
    path = folder / "kernel.py"
    path.write_text(text)
    command(["verify", "--kernel", f"{path}:launch", f"{path}:{beside}", "--json"])
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    return graph


def test_one_that_is_right_needs_not_guard_its_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch has no result for a number that is no row's. A bound says nothing of which rows are looked up."""
    found = verdict(tmp_path, capsys, TEXT)
    assert found["passed"], found
    assert found["bound"] is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("e = tl.where(e < 0, e + 6, e)", "pass"),
        ("picks_ptr + pair", "picks_ptr + pair // A"),
        ("e * O * I", "pair * O * I"),
        ("e * O * I", "e * O * B"),
        ("pair // A", "pair % A"),
    ],
)
def test_wrong_ones_are_not_passed(old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert old in TEXT
    assert not verdict(tmp_path, capsys, TEXT.replace(old, new))["passed"]


def test_a_number_below_zero_is_none_of_index_select(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict(tmp_path, capsys, TEXT.replace("e = tl.where(e < 0, e + 6, e)", "pass"), "selected")["passed"]

"""Kernels that read weights of eight bits: right ones are verified, those that read them otherwise are not."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from mugraph.cli import run as command

FILE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, s_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    n = tl.program_id(0) * 16 + tl.arange(0, 16)
    m, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :])
    stored = tl.load(w_ptr + n[None, :] * K + k[:, None])
    w = WEIGHT
    scale = tl.load(s_ptr + n)
    tl.store(out_ptr + m[:, None] * N + n[None, :], (tl.dot(x, w) * scale[None, :]).to(tl.float16))


# mugraph: x=f16[16, 32], w=TYPE[48, 32], s=f16[48]
def projected(x, w, s):
    return x @ (w.to(x.dtype) * s[:, None]).T


def launched(x, w, s):
    out = torch.empty(16, 48, dtype=torch.float16, device=x.device)
    kernel[(3,)](x, w, s, out, 32, 48, 16)
    return out
"""
WRONG = {
    "its sign is lost": "stored.to(tl.uint8, bitcast=True).to(tl.float16)",
    "wraps around": "(stored + stored).to(tl.float16) * 0.5",
    "wraps around at its least": "tl.abs(stored).to(tl.float16)",
    "a step aside": "stored.to(tl.float16) + 1.0",
    "no product": "stored",
}


def _found(weight: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    path = tmp_path / "file.py"
    path.write_text(FILE.replace("WEIGHT", weight).replace("TYPE", kind))
    status = command(["verify", f"{path}:projected", "--kernel", f"{path}:launched", "--json"])
    return status, json.dumps(json.loads(capsys.readouterr().out))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("kind", ["i8", "u8", "f8e5m2"])
def test_a_right_one_is_verified(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _found("stored.to(tl.float16)", kind, tmp_path, capsys)
    assert status == 0, said


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_is_not(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _found(WRONG[name], "i8", tmp_path, capsys)
    assert status != 0, said

"""The ablation of Mirage's optimisations: here without a GPU, where times are estimates and said to be."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from mugraph.options import Options
from mugraph.protocol.settings import Optimisation
from mugraph.research.held_memory import rows_of as held_rows
from mugraph.research.optimisations import Found, main

CHAIN = '''
import torch


# mugraph: x=f16[16, 256], w=f16[256, 256], v=f16[256, 256]
def chain(x, w, v):
    """What the sort computes keeps the two halves apart."""
    y = torch.tanh(x @ w)
    z = torch.sort(y, dim=-1).values
    return torch.tanh(z @ v)
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chain.py"
    path.write_text(CHAIN)
    return path


def test_each_is_left_out_once(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "found.json"
    assert main([f"{file}:chain", "--target", "h200", "--seconds", "2", "--json", str(kept)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("no GPU is used: times are estimates for h200")
    found = msgspec.json.decode(kept.read_bytes(), type=Found)
    assert not found.measured
    assert [row.without for row in found.rows] == ["", *get_args(Optimisation)]
    by = {row.without: row for row in found.rows}
    assert all(row.device_us is None and row.estimated_us for row in found.rows)
    assert by["memory"].held > by[""].held
    assert by["memory"].same_kernels
    assert by["threads"].held == by[""].held


def test_what_a_call_holds(file: Path) -> None:
    """The kernels hold no more than the code: 8 KiB a tensor, of which the sort needs two, and the numbers' places."""
    (row,) = held_rows(file, Options(target="h200", measure=False, budget_s=2), None)
    tensor, places = 16 * 256 * 2, 16 * 256 * 8
    assert row.code >= 2 * tensor + places
    assert row.shared <= row.code
    assert row.apart > row.shared


@pytest.mark.parametrize("argument", ["nowhere.py:chain", "chain"])
def test_what_is_no_file_is_said(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([argument])
    assert "a program is named FILE:NAME" in capsys.readouterr().err

"""Which files have Lax programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.research.lax_files import fared, main, summary

FILES = {
    "lax.py": "return torch.softmax(x @ w, -1) @ w",
    "half.py": "y = torch.cumprod(x @ w, 0)\n    return (y.relu() @ w).relu() @ w",
    "none.py": "return (x * w).relu().amax(-1)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        text = f"import torch\n\n\n# mugraph: x=f32[64, 64], w=f32[64, 64]\ndef program(x, w):\n    {body}\n"
        (tmp_path / name).write_text(text)
    improved = {"status": "improved", "peers_us": {"eager": 20.0, "torch.compile": 9.0}, "optimized_us": 10.0}
    results = [{"file": "lax.py", "regions": [improved]}, {"file": "half.py", "regions": [{"status": "no-gain"}]}]
    results.append({"file": "none.py", "regions": [improved]})
    (tmp_path / "results.json").write_text(json.dumps({"files": results}))
    return tmp_path


def test_files_are_told_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {one.file: one for one in fared(folder, [folder / "results.json"])}
    assert found["lax.py"].lax == found["lax.py"].units == 1
    assert 0 < found["half.py"].lax < found["half.py"].units
    assert found["none.py"].lax == 0 < found["none.py"].units
    assert (found["lax.py"].code, found["lax.py"].compiled) == (2.0, 0.9)
    assert (
        summary([found["lax.py"]], "file") == "1 file: 1 faster than the code as it runs, 0 faster than torch.compile"
    )
    assert main([str(folder), str(folder / "results.json")]) == 0
    assert "2 files with a Lax program: 1 faster" in capsys.readouterr().out


def test_what_is_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere", "nothing"]) == 2
    assert "usage" in capsys.readouterr().err

"""Nothing is left in the temporary folder, however a command ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("whole_machine")
TEXT = """\
import torch


# mugraph: x=f16[8, 64], w=f16[64, 64]
def gated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x @ w) * x


if __name__ == "__main__":
    gated(torch.ones(8, 64), torch.ones(64, 64))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, and a temporary folder beside it that is empty."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "model.py").write_text(TEXT)
    return folder


def left(place: Path) -> list[str]:
    temporary = place.with_name("temporary")
    return sorted(str(path.relative_to(temporary)) for path in temporary.rglob("*"))


def started(place: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mugraph", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=place, stdout=pipe, stderr=pipe, text=True)


def ran(place: Path, *arguments: str) -> str:
    child = started(place, *arguments)
    out, err = child.communicate(timeout=200)
    assert child.returncode == 0, err
    return out


def test_commands_that_end_by_themselves(place: Path):
    found = place.with_name("found.json")
    found.write_text(ran(place, "optimize", "model.py", "--json", "--no-measure", "--target", "h100"))
    assert left(place) == []
    ran(place, "verify", "--ugraph", str(found), "model.py:gated")
    assert left(place) == []
    ran(place, "record", "--", sys.executable, "model.py")
    assert left(place) == []
    ran(place, "doctor")
    assert left(place) == []


def test_a_benchmark(place: Path):
    ran(place, "bench", "--samples", ".", "--budget", "1")
    assert left(place) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking it")
def test_a_command_that_is_ended(place: Path):
    child = started(place, "optimize", "model.py", "-v", "--no-store", "--no-measure", "--target", "h100")
    assert child.stderr is not None
    for line in child.stderr:
        if "first verified" in line:  # the process that runs kernels is there
            break
    assert left(place) != []
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM, err
    assert left(place) == []

"""Where PyTorch has no bytecode and gets none, it is kept in a folder of ours; elsewhere nothing is changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import os, subprocess, sys
from pathlib import Path
from mugraph.bytecode import keep_bytecode
keep_bytecode(Path(sys.argv[1]), "heavy")
subprocess.run([sys.executable, "-c", "import heavy"], check=True)
print(os.environ.get("PYTHONPYCACHEPREFIX", ""))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "site" / "heavy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 1\n")
    return package


def run(package: Path, folder: Path, **environment: str) -> str:
    """What the program says is set, after a process that it started has imported the package."""
    path = os.pathsep.join([str(package.parent), *(entry for entry in sys.path if entry)])
    said = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": "", **environment, "PYTHONPATH": path}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    return subprocess.run(
        command, env={**os.environ, **said}, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_it_is_kept_where_it_would_not_be(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bytecode"
    assert run(package, folder, PYTHONDONTWRITEBYTECODE="1") == str(folder)
    assert list(folder.rglob("heavy/__init__*.pyc"))
    assert not list(package.rglob("*.pyc"))


def test_nothing_is_changed_where_it_is_beside_the_source(package: Path, tmp_path: Path) -> None:
    assert not run(package, tmp_path / "bytecode")
    assert list(package.rglob("*.pyc"))
    assert not run(package, tmp_path / "bytecode", PYTHONDONTWRITEBYTECODE="1")
    assert not (tmp_path / "bytecode").exists()


def test_what_the_user_has_set_stays(package: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    assert run(package, tmp_path / "bytecode", PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(own)) == str(own)
    assert not list(tmp_path.rglob("*.pyc"))

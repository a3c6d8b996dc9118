from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Record = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """`mugraph record -- COMMAND` in the test's folder."""

    def run(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "mugraph.cli", "record", "--", *command]
        environment = {**os.environ, **more}
        return subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=120)

    return run

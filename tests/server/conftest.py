"""Editors and fake engines for the server's tests; nothing they start is left when a test is over."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.server.support.editor import FULL, Editor
from tests.server.support.processes import wait_gone

FAKE = Path(__file__).parent / "support" / "fake_engine.py"


class Control:
    """What the fake engine is told, and what it has heard."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "control.json"
        self.tell()

    def tell(self, **told: Any) -> None:
        other = self.path.with_suffix(".new")
        other.write_text(json.dumps(told))
        os.replace(other, self.path)

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(FAKE), str(self.path)]

    def heard(self, what: str) -> int:
        return self._lines("log").count(what)

    def pids(self) -> list[int]:
        """Of the engines, and of what they have started."""
        return [int(line) for line in self._lines("pids")]

    def processes(self) -> list[psutil.Process]:
        return [psutil.Process(pid) for pid in self.pids() if psutil.pid_exists(pid)]

    def _lines(self, kind: str) -> list[str]:
        path = self.path.with_name(f"{self.path.name}.{kind}")
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def control(tmp_path: Path) -> Control:
    folder = tmp_path / "control"
    folder.mkdir()
    return Control(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


MakeEditor = Callable[..., Editor]


@pytest.fixture
def editor(tmp_path: Path, root: Path, control: Control) -> Iterator[MakeEditor]:
    """Makes editors with the fake engine. At the end: nothing on standard output but messages, no process left."""
    made: list[Editor] = []

    def make(**given: Any) -> Editor:
        settings = {"engine": {"command": control.command}, **given.pop("settings", {})}
        env = {"MUGRAPH_CACHE_DIR": str(tmp_path / "cache"), **given.pop("env", {})}
        capabilities = given.pop("capabilities", FULL)
        where = given.pop("root", root)
        kind: type[Editor] = given.pop("kind", Editor)
        new = kind(where, settings=settings, env=env, capabilities=capabilities, **given)
        made.append(new)
        return new

    yield make
    try:
        for one in made:
            family = one.family()
            if one.process.poll() is None:
                assert one.quit() == 0, one.stderr[-3000:]
            assert one.garbage == b""
            assert wait_gone([*family, *control.processes()], 5) == []
    finally:
        for one in made:
            one.kill()
        for process in control.processes():
            process.kill()

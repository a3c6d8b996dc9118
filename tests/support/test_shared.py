"""Made once, however many ask, and read by all."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.support.shared import made_once


def test_who_asks_meanwhile_waits(tmp_path: Path):
    """Threads have files of their own open, and so exclude each other as workers do."""
    together = Barrier(3)
    made: list[str] = []

    def make() -> list[str]:
        made.append("once")
        time.sleep(0.1)  # the others come while it is being made
        return ["found"]

    def asked(_: int) -> list[str]:
        together.wait()
        return made_once(tmp_path / "one.pickle", make)

    with ThreadPoolExecutor(3) as workers:
        assert list(workers.map(asked, range(3))) == [["found"]] * 3
    assert made == ["once"]


def test_what_fails_is_made_by_the_next(tmp_path: Path):
    def fail() -> str:
        raise ValueError("not found")

    with pytest.raises(ValueError, match="not found"):
        made_once(tmp_path / "one.pickle", fail)
    assert made_once(tmp_path / "one.pickle", lambda: "found") == "found"
    assert made_once(tmp_path / "one.pickle", fail) == "found"

"""Processes that measure are started before it is known whether there will be a search; others only with one."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

from mugraph.solve.tools import Tools
from mugraph.targets import TARGETS


def tools(log: list[str]) -> Any:
    def begins(name: str) -> Any:
        return SimpleNamespace(begin=lambda: log.append(name))

    return Tools(
        TARGETS["h200"],
        begins("tester"),
        measurer=begins("measurer"),
        pool=begins("pool"),
        peers=cast(Any, SimpleNamespace(measurer=begins("peers"))),
    )


def test_where_something_is_measured_all_begin_early() -> None:
    log: list[str] = []
    tools(log).begin_early()
    assert sorted(log) == ["measurer", "peers", "pool", "tester"]


def test_without_a_device_nothing_does() -> None:
    log: list[str] = []
    found = tools(log)
    found.measurer = None
    found.begin_early()
    assert log == []


def test_a_search_leaves_the_peers_to_their_thread() -> None:
    log: list[str] = []
    tools(log).begin()
    assert "peers" not in log


def test_what_takes_long_to_import_waits_for_the_processes_that_start() -> None:
    """The process that traces starts before PyTorch is imported here: both take seconds."""
    late = {"torch", "igraph", "triton", "z3"}
    code = f"import mugraph.pipeline, mugraph.cli, sys; print(sorted({late!r} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

"""Processes that multiply small matrices are told to do it with one thread, unless the user has said how many."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import psutil
import pytest
from mugraph.executors.processes import Processes
from mugraph.pipeline import Options, working
from mugraph.targets import TARGETS
from mugraph.tune.device import Device
from mugraph.verification.float_test import FloatTester

VARIABLE, OF_PYTORCH = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"


def environment_of(process: psutil.Process) -> Mapping[str, str]:
    """Once it runs its own program: until then it has this one's environment, or none."""
    here = psutil.Process().cmdline()
    while process.cmdline() in ([], here) or not process.environ():
        time.sleep(0.01)
    return process.environ()


def started() -> Iterator[Mapping[str, str]]:
    """The environments of a process that searches and of one that runs kernels."""
    with closing(Processes(1)) as processes, closing(FloatTester()) as tester:
        processes.begin()
        tester.begin()
        assert tester.pid is not None
        for pid in (*processes.pids, tester.pid):
            yield environment_of(psutil.Process(pid))


@pytest.mark.usefixtures("whole_process")
@pytest.mark.parametrize(("said", "expected"), [(None, "1"), ("3", "3")])
def test_they_have_one_thread(monkeypatch: pytest.MonkeyPatch, said: str | None, expected: str) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(VARIABLE, said)
    found = [environment[VARIABLE] for environment in started()]
    assert found == [expected] * 2


@pytest.mark.usefixtures("whole_process")
@pytest.mark.parametrize(("said", "expected"), [(None, "1"), ("3", "3")])
def test_search_units_side_by_side_share_the_processors(
    monkeypatch: pytest.MonkeyPatch, said: str | None, expected: str
) -> None:
    """Of two processors each has one: for PyTorch too, which they run in processes of their own."""
    monkeypatch.delenv(OF_PYTORCH, raising=False)
    if said is not None:
        monkeypatch.setenv(OF_PYTORCH, said)
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 2)
    monkeypatch.setattr("mugraph.sharing.processors", lambda: 2)
    options = Options(target="h100", measure=False)
    with working(Device("no GPU", "none", TARGETS["h100"]), TARGETS["h100"], options) as tools:
        assert tools.units is not None
        tools.units.begin()
        found = [environment_of(psutil.Process(pid))[OF_PYTORCH] for pid in tools.units.pids]
    assert found == [expected] * 2

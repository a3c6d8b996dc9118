"""What holds for all tests, whoever starts them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest
from mugraph import one_thread, sharing
from mugraph.trace import tracer
from mugraph.verification import float_test

from tests.support.clock import Clock, slow_clock
from tests.support.forks import ForkServer, forked, interpreting_server, tracing_server
from tests.support.searched import Searched, searching

# A shell that runs us in the background makes its children deaf to Ctrl-C, and ours would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BESIDE = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""Processes that run tests. They share the machine as runs of `mugraph bench files --jobs` do: what each starts takes
no processor from the others."""
if BESIDE > 1:
    os.environ.setdefault(sharing.VARIABLE, f"{BESIDE}:")
    os.environ.update(one_thread.beside_others(os.environ, max(1, sharing.processors() // BESIDE)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where each run tries the same examples, further draws show nothing new."""
    if config.getoption("--hypothesis-profile") != "ci":
        return
    more = [item for item in items if item.get_closest_marker("more")]
    config.hook.pytest_deselected(items=more)
    items[:] = [item for item in items if not item.get_closest_marker("more")]


def pytest_collection_finish() -> None:
    """What is there now, thousands of tests and PyTorch, stays: nobody need look through it for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines and command lines that a test starts have as many processes as where they are alone."""
    monkeypatch.delenv(sharing.VARIABLE, raising=False)


@pytest.fixture(scope="session")
def tracing() -> Iterator[ForkServer]:
    with closing(tracing_server()) as server:
        yield server


@pytest.fixture(scope="session")
def interpreting() -> Iterator[ForkServer]:
    with closing(interpreting_server()) as server:
        yield server


@pytest.fixture
def forks(tracing: ForkServer, interpreting: ForkServer) -> Iterator[None]:
    """What a test itself has traced and run in Triton's interpreter is forked from a process that has PyTorch already;
    not so for engines and command lines that are processes of their own."""
    with forked(tracing, interpreting):
        yield


@pytest.fixture
def whole_process(forks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes as users have them in place of forks."""
    for module in (tracer, float_test):
        monkeypatch.setattr(module, "subprocess", subprocess)


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory, tracing: ForkServer, interpreting: ForkServer) -> Searched:
    """The path of a sample -> what is found in it."""
    return searching(tmp_path_factory, tracing, interpreting)


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Searches go by this clock, a slow one: they end by their work."""
    with slow_clock() as clock:
        yield clock

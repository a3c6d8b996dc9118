"""A fork is to who starts it what a process of subprocess.Popen is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.support.forks import Fork, ForkServer, OwnForkServer


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with closing(OwnForkServer("json", GIVEN="by the server")) as server:
        yield server


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


def test_it_has_its_arguments_environment_folder_and_streams(server: ForkServer, tmp_path: Path):
    said = "import os, sys\nprint(sys.argv[1:], os.environ['MINE'], os.environ['GIVEN'], os.getcwd(), input())\n"
    run, environment = script(tmp_path, said), {"MINE": "by the caller"}
    child = Fork(server, run, ["one", "two"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"asked\n")
    assert child.stdout.read().decode() == f"['one', 'two'] by the caller by the server {os.getcwd()} asked\n"
    assert child.wait(60) == 0
    assert "MINE" not in os.environ


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('a sentence')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(7)", 7),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_its_status_is_what_a_process_has(server: ForkServer, tmp_path: Path, text: str, status: int):
    run = script(tmp_path, text)
    assert Fork(server, run, [], stderr=subprocess.DEVNULL).wait(60) == status
    assert subprocess.run([sys.executable, run], stderr=subprocess.DEVNULL).returncode == status


def test_nothing_of_one_is_left_for_the_next(server: ForkServer, tmp_path: Path):
    run = script(tmp_path, "import json, os\nassert not hasattr(json, 'seen')\njson.seen = True\n")
    assert [Fork(server, run, []).wait(60) for _ in range(2)] == [0, 0]


def test_it_leads_a_session_and_can_be_killed_with_what_it_started(server: ForkServer, tmp_path: Path):
    run = script(tmp_path, "import subprocess\nsubprocess.run(['sleep', '600'])\n")
    child = Fork(server, run, [])
    assert os.getsid(child.pid) == child.pid
    assert child.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait(60) == -signal.SIGKILL


def test_it_ends_with_its_server(tmp_path: Path):
    with closing(OwnForkServer()) as server:
        hanging = psutil.Process(Fork(server, script(tmp_path, "import time; time.sleep(600)"), []).pid)
    deadline = time.monotonic() + 60
    while hanging.is_running() and hanging.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)

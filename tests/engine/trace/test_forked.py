"""The process that has PyTorch imported and forks for each trace: it stays as it was, whatever the user's code does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from mugraph.ir.region import Trace
from mugraph.trace import forked
from mugraph.trace.tracer import trace_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork is not safe here")


@pytest.fixture(autouse=True)
def _forked() -> None:
    """Not what other tests of this room fork from."""


DOUBLE = """
# mugraph: x=f32[4]
def double(x):
    return x * 2
"""


def traced(folder: Path, text: str, timeout_s: float = 60.0) -> Trace:
    path = folder / "file.py"
    path.write_text(text + DOUBLE)
    return trace_file(path, timeout_s=timeout_s)


def is_whole(trace: Trace) -> bool:
    return not trace.errors and [region.function for region in trace.regions] == ["double"]


def server(folder: Path) -> psutil.Process:
    assert is_whole(traced(folder, ""))
    found = forked.process_id()
    assert found is not None
    return psutil.Process(found)


def waits_for(what: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (is_so := what()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_so


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ['LEFT'] = 'behind'\nos.chdir('/')",
        "import sys\nsys.modules['json'] = None\nsys.path.clear()",
        "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.Tensor.__mul__ = None",
        "import os\nos.close(0)\nos.closerange(3, 64)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,)).start()",
    ],
)
def test_what_a_file_does_to_its_process_is_not_seen_by_the_next(tmp_path: Path, text: str) -> None:
    before = server(tmp_path)
    traced(tmp_path, text)
    assert is_whole(traced(tmp_path, "import json, os\nassert 'LEFT' not in os.environ\nassert os.getcwd() != '/'"))
    assert forked.process_id() == before.pid, "and the process is the same"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\nos._exit(7)", "it ended with status 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "it was killed by signal 9"),
        ("import os, signal\nos.kill(os.getppid(), 0)\nos._exit(3)", "it ended with status 3"),
        ("raise RuntimeError('no')", "RuntimeError: no"),
    ],
)
def test_a_file_that_ends_its_process(tmp_path: Path, text: str, said: str) -> None:
    before = server(tmp_path)
    (error,) = traced(tmp_path, text).errors
    assert said in error
    assert not error.endswith(": ")
    assert is_whole(traced(tmp_path, ""))
    assert forked.process_id() == before.pid


def test_what_takes_too_long_is_killed_with_all_it_has_started(tmp_path: Path) -> None:
    before = server(tmp_path)
    started = tmp_path / "started"
    text = f"""
import subprocess, time
found = subprocess.Popen(["sleep", "300"])
with open({str(started)!r}, "w") as file:
    file.write(str(found.pid))
time.sleep(300)
"""
    (error,) = traced(tmp_path, text, timeout_s=2.0).errors
    assert "was still running after 2 s" in error
    assert waits_for(lambda: is_gone(int(started.read_text())))
    assert is_whole(traced(tmp_path, ""))
    assert forked.process_id() == before.pid


def test_one_that_was_killed_is_replaced(tmp_path: Path) -> None:
    before = server(tmp_path)
    before.kill()
    assert is_whole(traced(tmp_path, ""))
    assert is_whole(traced(tmp_path, ""))
    assert forked.process_id() not in (None, before.pid)


def test_one_that_is_killed_while_it_traces(tmp_path: Path) -> None:
    before = server(tmp_path)
    text = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time\ntime.sleep(2)"
    assert is_whole(traced(tmp_path, f"import os\nif os.getppid() == {before.pid}:\n    exec({text!r})"))


def test_the_environment_and_the_folder_are_those_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = server(tmp_path)
    monkeypatch.setenv("MUGRAPH_TEST_OF_FORKED", "here")
    monkeypatch.chdir(tmp_path)
    text = f"import os\nassert os.environ['MUGRAPH_TEST_OF_FORKED'] == 'here'\nassert os.getcwd() == {str(tmp_path)!r}"
    assert is_whole(traced(tmp_path, text))
    assert forked.process_id() == before.pid
    monkeypatch.setenv("TORCH_TEST_OF_FORKED", "1")
    assert is_whole(traced(tmp_path, "import os\nassert os.environ['TORCH_TEST_OF_FORKED'] == '1'"))
    assert forked.process_id() != before.pid, "PyTorch may have read it when it was imported"


def test_several_threads_at_once(tmp_path: Path) -> None:
    server(tmp_path)
    found: list[Trace] = []

    def work(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(traced(folder, ""))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [is_whole(trace) for trace in found] == [True] * 3


def test_it_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    """Killed in the middle of a trace, which ends as well."""
    (tmp_path / "slow.py").write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} {{os.getppid()}}')\n"
        f"time.sleep(300)\n{DOUBLE}"
    )
    slow = str(tmp_path / "slow.py")
    text = f"import pathlib, mugraph.trace.tracer as tracer\ntracer.trace_file(pathlib.Path({slow!r}))"
    asking = subprocess.Popen([sys.executable, "-c", text])
    try:
        assert waits_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", 60.0)
        pids = [int(one) for one in (tmp_path / "pid").read_text().split()]
        assert asking.pid not in pids
    finally:
        asking.kill()
        asking.wait()
    assert waits_for(lambda: all(is_gone(pid) for pid in pids))


STOPPED = """
import subprocess, sys, threading, time
from pathlib import Path
import psutil
from mugraph.trace import forked
from mugraph.trace.tracer import trace_file
from mugraph.worker.processes import kill_children

slow, whole = Path(sys.argv[1]), Path(sys.argv[2])
assert not trace_file(whole).errors
server = forked.process_id()
errors = []
thread = threading.Thread(target=lambda: errors.extend(trace_file(slow).errors))
thread.start()
while not psutil.Process(server).children():
    time.sleep(0.01)
other = subprocess.Popen(["sleep", "300"])
assert kill_children(keep=server).children == (other.pid,)
thread.join()
assert other.wait() == -9
assert "killed by signal 9" in errors[0], errors
assert not trace_file(whole).errors
assert forked.process_id() == server
"""


def test_what_is_stopped_does_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import time\ntime.sleep(300)\n{DOUBLE}")
    (tmp_path / "whole.py").write_text(DOUBLE)
    command = [sys.executable, "-c", STOPPED, str(tmp_path / "slow.py"), str(tmp_path / "whole.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_process_that_was_forked_from_this_one_has_its_own(tmp_path: Path) -> None:
    before = server(tmp_path)
    child = os.fork()
    if child == 0:
        os._exit(0 if forked.process_id() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert forked.process_id() == before.pid

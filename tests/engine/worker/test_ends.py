"""Cancelling, leaving and dying in the middle of things: answers come in time, and no process is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import psutil
import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.values import Document

from .conftest import Engine, document, gone, lives, quick

pytestmark = pytest.mark.usefixtures("whole_machine")
BUSY = """
import torch

# mugraph: x=f16[64, 512], w=f16[512, 512], u=f16[512, 512]
def chain(x, w, u):
    return torch.softmax(x @ w, -1) @ u * torch.sigmoid(x @ u)
"""
HANGS = """
import os, subprocess, sys, time
sleeper = "import time; time.sleep(600)"
subprocess.Popen([sys.executable, "-c", sleeper], start_new_session=True)
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.waitpid(child, 0)
open(__file__ + ".hangs", "w").close()
time.sleep(600)
# mugraph: x=f16[64, 64]
def f(x): return x @ x
"""


def written(engine: Engine, name: str, text: str, version: int = 1) -> Document:
    path = engine.root / name
    path.write_text(text)
    return document(path, version=version)


def searching(engine: Engine, name: str = "busy.py") -> m.Search:
    """In the middle of a search of 60 s."""
    engine.ask(m.Configure(engine.id(), quick(60.0)), m.Configured)
    request = m.Search(engine.id(), written(engine, name, BUSY))
    engine.send(request)
    engine.until(lambda said: isinstance(said, m.Progress) and said.key is not None)
    return request


def hanging(engine: Engine) -> m.Find:
    """Tracing a module that hangs, with children in sessions of their own, one of them an orphan."""
    request = m.Find(engine.id(), written(engine, "hangs.py", HANGS))
    engine.send(request)
    deadline = time.monotonic() + 30
    while not (engine.root / "hangs.py.hangs").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(engine.family()) >= 5
    return request


def command_of(one: psutil.Process) -> list[str]:
    """Nothing of one that has just ended."""
    with contextlib.suppress(psutil.Error):
        return one.cmdline()
    return []


def test_cancelling_a_search_takes_effect_at_once(engine: Engine):
    request = searching(engine)
    began = time.monotonic()
    engine.send(m.Cancel(request.id))
    finished = engine.until_type(m.Finished)
    took = time.monotonic() - began
    print(f"cancelled after {took * 1000:.0f} ms")
    assert (finished.id, finished.outcome) == (request.id, "cancelled")
    assert took < 2.0  # 0.2 on a machine that has nothing else to do
    engine.send(m.Cancel(request.id))  # answered already: nothing happens
    engine.ask(m.Configure(engine.id(), quick(1.0)), m.Configured)
    assert engine.search(request.document).outcome == "done", "the engine works on"


def test_cancelling_a_module_that_hangs(engine: Engine):
    family = engine.family()
    request = hanging(engine)
    began = time.monotonic()
    engine.send(m.Cancel(request.id))
    failed = engine.until_type(m.Failed)
    took = time.monotonic() - began
    print(f"cancelled after {took * 1000:.0f} ms")
    assert (failed.id, failed.message) == (request.id, "cancelled")
    assert took < 2.0  # 0.2 on a machine that has nothing else to do
    known = {one.pid for one in family}
    left = [one for one in engine.family() if one.pid not in known and lives(one)]
    servers = [one for one in left if "mugraph.trace.forkserver" in command_of(one)]
    assert len(servers) <= 1, "which stays for the next trace, without what it has forked"
    assert gone([one for one in left if one not in servers], 2) == []


def test_a_newer_version_supersedes(engine: Engine):
    request = searching(engine)
    newer = Document(request.document.uri, request.document.path, 2, "x = 1\n")
    engine.send(m.Find(engine.id(), newer))
    finished = engine.until_type(m.Finished)
    assert (finished.id, finished.outcome) == (request.id, "superseded")
    found = engine.until(lambda said: isinstance(said, m.Found) and said.version == 2)
    assert isinstance(found, m.Found)
    assert found.regions == []
    heard = len(engine.heard)
    assert engine.search(request.document).outcome == "superseded", "an older version is not looked at"
    assert not [said for said in engine.heard[heard:] if isinstance(said, (m.Found, m.RegionChanged))]


def test_what_is_seen_goes_before_the_rest(engine: Engine):
    background = searching(engine)
    engine.send(m.Prioritise(background.document.uri, "background"))
    waiting = m.Find(engine.id(), written(engine, "later.py", "x = 1\n"), "background")
    engine.send(waiting)
    saved = engine.ask(m.Find(engine.id(), written(engine, "now.py", "x = 2\n"), "saved"), m.Found)
    assert saved.errors == []
    answered = [said.id for said in engine.all_of(m.Found)]
    assert waiting.id not in answered
    assert not engine.all_of(m.Finished), "put back, not ended"
    found = engine.until(lambda said: isinstance(said, m.Found) and said.id == background.id)
    assert isinstance(found, m.Found), "and begun again"


@pytest.mark.parametrize("busy", [searching, hanging])
@pytest.mark.parametrize("end", ["exit", "end of input", "SIGTERM", "SIGKILL"])
def test_no_process_is_left(engine: Engine, busy: object, end: str):
    assert callable(busy)
    busy(engine)
    family = engine.family()
    began = time.monotonic()
    if end == "exit":
        engine.send(m.Exit())
    elif end == "end of input":
        assert engine.process.stdin is not None
        engine.process.stdin.close()
    else:
        os.kill(engine.pid, getattr(signal, end))
    status = engine.process.wait(5)
    took = time.monotonic() - began
    left = gone(family, 5)
    print(f"{end}: {took * 1000:.0f} ms, the last of {len(family)} processes {time.monotonic() - began:.2f} s")
    assert left == []
    if end != "SIGKILL":
        assert status == 0
        assert took < 1.0


def test_a_module_that_hangs_goes_even_if_nobody_is_left_to_end_it(engine: Engine):
    hanging(engine)
    front, *others = engine.family()
    servers = [one for one in others if lives(one) and "mugraph.trace.forkserver" in one.cmdline()]
    server = min(servers, key=lambda one: one.create_time())  # the others are its forks
    tracing = [server, *server.children()]
    assert len(tracing) == 2
    [runner] = front.children()
    front.suspend()
    for one in (runner, front):
        one.kill()
    assert gone(tracing, 5) == []
    for one in others:  # what user code has put into sessions of its own is beyond reach then
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def forkserver_is_ready(engine: Engine) -> None:
    """It imports PyTorch for seconds, so that the first trace need not."""
    [server] = [one for one in engine.family() if "mugraph.trace.forkserver" in one.cmdline()]
    deadline, spent = time.monotonic() + 60, -1.0
    while (now := sum(server.cpu_times()[:2])) != spent or now < 0.5:
        assert time.monotonic() < deadline
        spent = now
        time.sleep(0.5)


def test_idle_costs_nothing(engine: Engine):
    engine.ask(m.Find(engine.id(), written(engine, "idle.py", "x = 1\n")), m.Found)
    forkserver_is_ready(engine)
    time.sleep(0.5)
    heard = len(engine.heard)
    before = [sum(one.cpu_times()[:2]) for one in engine.family()]
    time.sleep(2)
    after = [sum(one.cpu_times()[:2]) for one in engine.family()]
    print(f"idle: {(sum(after) - sum(before)) / 2:.2%} of a processor")
    assert sum(after) - sum(before) < 0.02
    engine.ask(m.Ping(engine.id()), m.Pong)
    assert len(engine.heard) == heard + 1


def test_exit_before_anything(start: object):
    assert callable(start)
    engine = start()
    family = engine.family()
    engine.send(m.Exit())
    assert engine.process.wait(30) == 0
    assert gone(family, 30) == []


def test_a_killed_runner_is_replaced(engine: Engine):
    """Out of memory, say: the search ends with a sentence, what it had started ends, the next one works."""
    request = searching(engine)
    [runner] = psutil.Process(engine.pid).children()
    family = [runner, *runner.children(recursive=True)]
    runner.kill()
    finished = engine.until_type(m.Finished)
    assert (finished.id, finished.outcome) == (request.id, "failed")
    assert "memory" in finished.message
    assert gone(family, 5) == []
    engine.ask(m.Configure(engine.id(), quick(1.0)), m.Configured)
    assert engine.search(Document(request.document.uri, request.document.path, 2)).outcome == "done"
    report = engine.ask(m.AskReport(engine.id()), m.Report)
    assert report.restarts == 1
    assert report.errors == [finished.message]

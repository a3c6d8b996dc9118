"""The processes of a search serve the next one, until another kind of search or nobody asks for them."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import psutil
import pytest
from mugraph.options import Options
from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings
from mugraph.solve.tools import Tools
from mugraph.targets import TARGETS
from mugraph.tune.device import Device
from mugraph.worker import kept_tools
from mugraph.worker.frames import Ended, RunnerReady, SearchTrace, TracedFile, TraceFile
from mugraph.worker.kept_tools import KeptTools
from mugraph.worker.runner_process import Heard, RunnerGone, RunnerProcess

from .conftest import Engine, document, gone, lives, quick

pytestmark = pytest.mark.usefixtures("whole_machine")
T = TypeVar("T")

TWO = """
import torch

# mugraph: x=f16[{n}, 1024], w=f16[1024]
def gate(x, w):
    return torch.sigmoid(x + w) * x + w

# mugraph: x=f16[{n}, 1024], w=f16[1024]
def other(x, w):
    return torch.sigmoid(x * w) * x
"""
BUSY = """
import torch

# mugraph: x=f16[64, 512], w=f16[512, 512], u=f16[512, 512]
def chain(x, w, u):
    return torch.softmax(x @ w, -1) @ u * torch.sigmoid(x @ u)
"""
ROLES = {"test": "mugraph.verification.float_child", "solve": "mugraph.executors.child"}


def serving(engine: Engine) -> dict[str, set[psutil.Process]]:
    """The processes of searches, by what they do."""
    family = [one for one in engine.family() if lives(one)]
    return {role: {one for one in family if module in one.cmdline()} for role, module in ROLES.items()}


def saved(engine: Engine, text: str, version: int, name: str = "model.py") -> m.Finished:
    path = engine.root / name
    path.write_text(text)
    return engine.search(document(path, version=version))


def improved(engine: Engine, version: int) -> set[str]:
    changes = [one for one in engine.all_of(m.RegionChanged) if one.version == version]
    return {one.region.function for one in changes if one.region.status == "improved"}


def test_a_second_search_uses_the_same_processes_and_others_once_a_setting_changes(engine: Engine):
    assert saved(engine, TWO.format(n=256), 1).outcome == "done"
    assert improved(engine, 1) == {"gate", "other"}
    first = serving(engine)
    assert first["test"]
    assert saved(engine, TWO.format(n=384), 2).outcome == "done"
    assert improved(engine, 2) == {"gate", "other"}
    assert serving(engine) == first

    engine.ask(m.Configure(engine.id(), quick(3.0)), m.Configured)
    assert saved(engine, TWO.format(n=512), 3).outcome == "done"
    assert improved(engine, 3) == {"gate", "other"}
    second = serving(engine)
    assert second["test"]
    assert not second["test"] & first["test"]
    assert gone([*first["test"], *first["solve"]], 10) == []

    family = engine.family()
    assert engine.exit() == 0
    assert gone(family, 5) == []


def test_one_that_died_is_begun_again(engine: Engine):
    assert saved(engine, TWO.format(n=256), 1).outcome == "done"
    first = serving(engine)
    for one in (*first["test"], *first["solve"]):
        one.kill()
    assert gone([*first["test"], *first["solve"]], 10) == []
    assert saved(engine, TWO.format(n=384), 2).outcome == "done"
    assert improved(engine, 2) == {"gate", "other"}


@pytest.mark.parametrize("after_s", [0.0, 0.7])
def test_a_search_that_is_cancelled_leaves_the_next_one_working(engine: Engine, after_s: float):
    engine.ask(m.Configure(engine.id(), quick(60.0)), m.Configured)
    path = engine.root / "busy.py"
    path.write_text(BUSY)
    request = m.Search(engine.id(), document(path))
    engine.send(request)
    engine.until(lambda said: isinstance(said, m.Progress) and said.key is not None)
    time.sleep(after_s)
    engine.send(m.Cancel(request.id))
    assert engine.until_type(m.Finished).outcome == "cancelled"
    assert saved(engine, TWO.format(n=256), 1).outcome == "done"
    assert improved(engine, 1) == {"gate", "other"}
    assert engine.ask(m.AskReport(engine.id()), m.Report).errors == []


@dataclass
class Impatient:
    """A runner whose processes of searches are ended after half a second."""

    inbox: queue.Queue[Heard | RunnerGone] = field(default_factory=lambda: queue.Queue())

    def until(self, kind: type[T], timeout_s: float = 90.0) -> T:
        deadline = time.monotonic() + timeout_s
        while True:
            said = self.inbox.get(timeout=deadline - time.monotonic())
            assert isinstance(said, Heard), said
            if isinstance(said.word, kind):
                return said.word


@pytest.fixture
def impatient() -> Iterator[tuple[RunnerProcess, Impatient]]:
    script = (
        "from mugraph.worker.processes import adopt_orphans\n"
        "from mugraph.worker.streams import claim\n"
        "ends = claim()\n"
        "adopt_orphans()\n"
        "from mugraph.worker.running import Runner\n"
        "Runner(*ends, idle_s=0.5).serve()\n"
    )
    heard = Impatient()
    runner = RunnerProcess(heard.inbox.put, (sys.executable, "-P", "-c", script))
    runner.start()
    yield runner, heard
    runner.kill()


def test_idle_they_are_ended(impatient: tuple[RunnerProcess, Impatient], tmp_path: Path):
    runner, heard = impatient
    path = tmp_path / "model.py"
    path.write_text(TWO.format(n=256))
    heard.until(RunnerReady)
    assert runner.pid is not None
    own = psutil.Process(runner.pid)

    def search(job: int) -> list[psutil.Process]:
        runner.order(TraceFile(job, document(path), False, 60.0))
        traced = heard.until(TracedFile)
        heard.until(Ended)
        options = Options.of(quick())
        runner.order(SearchTrace(job + 1, traced.trace, options, traced.ways, (), True, traced.text))
        ended = heard.until(Ended)
        assert (ended.error, ended.stopped) == (None, False)
        children = own.children(recursive=True)
        return [one for one in children if lives(one) and set(ROLES.values()) & set(one.cmdline())]

    first = search(1)
    assert first
    assert gone(first, 30) == []
    assert own.is_running()
    second = search(3)
    assert second, "the next search begins others"
    assert not set(first) & set(second)
    assert gone(second, 30) == []


class Process:
    """Stands for a process of the tools."""

    pid = 1

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def release(self) -> None:
        self.log.append("release")

    def renew(self, *, begin: bool) -> None:
        self.log.append(f"renew {begin}")

    def forget(self) -> None:
        self.log.append("forget")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What becomes of tools."""
    log: list[str] = []

    @contextmanager
    def working(device: Device, target: Any, options: Options, giving_up: object) -> Generator[Tools]:
        log.append("begin")
        one = cast(Any, Process(log))
        yield Tools(target, one, peers=one, pool=None)
        log.append("end")

    monkeypatch.setattr(kept_tools, "working", working)
    return log


H200, H100 = TARGETS["h200"], TARGETS["h100"]
DEVICE = Device("a GPU", "gpu", H200, H200.capability, "1")
OPTIONS = Options.of(EngineSettings())


def test_the_same_for_the_same(log: list[str]):
    kept = KeptTools()
    assert not kept.held
    kept.rest(soon_again=True)  # there is nothing
    one = kept.of(DEVICE, H200, OPTIONS)
    kept.rest(soon_again=False)
    assert kept.of(replace(DEVICE), H200, replace(OPTIONS)) is one
    kept.rest(soon_again=True)
    # of the tests' process and of the peers'
    assert log == ["begin", "release", "release", "renew False", "release", "release", "renew True"]
    kept.close()
    kept.close()
    assert log[-1] == "end"
    assert not kept.held


@pytest.mark.parametrize(
    "other",
    [
        (replace(DEVICE, driver="2"), H200, OPTIONS),
        (DEVICE, H100, OPTIONS),
        *((DEVICE, H200, replace(OPTIONS, **cast(Any, {name: value}))) for name, value in {
            "measure": False, "compare_with": "compiled", "peers": ("eager",), "executor": "processes", "budget_s": 1.0,
        }.items()),
    ],
    ids=["driver", "target", "measure", "compare_with", "peers", "executor", "budget"],
)  # fmt: skip
def test_others_for_another(log: list[str], other: tuple[Device, Any, Options]):
    kept = KeptTools()
    one = kept.of(DEVICE, H200, OPTIONS)
    assert kept.of(*other) is not one
    assert log == ["begin", "end", "begin"]


def test_nothing_that_was_found_is_known_in_the_next_search(log: list[str]):
    kept = KeptTools()
    tools = kept.of(DEVICE, H200, OPTIONS)
    fresh = {name: repr(getattr(tools, name)) for name in ("solved", "lowerings", "verdicts")}
    alike, time_ = tools.alike, tools.file_time
    tools.solved["a"] = {}
    tools.lowerings["a"] = cast(Any, None)
    tools.verdicts["a"] = cast(Any, None)
    tools.spent.add({"search": 3.0})
    assert kept.of(DEVICE, H200, OPTIONS) is tools
    assert {name: repr(getattr(tools, name)) for name in fresh} == fresh
    assert tools.alike is not alike
    assert tools.file_time is not time_
    assert tools.lap().get("search") is None


def test_they_do_not_serve_for_ever(log: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_tools, "_SEARCHES", 3)
    kept = KeptTools()
    every = [kept.of(DEVICE, H200, OPTIONS) for _ in range(7)]
    assert [every[at] is every[at + 1] for at in range(6)] == [True, True, False, True, True, False]


def test_an_executor_is_not_kept(log: list[str]):
    kept = KeptTools()
    tools = kept.of(DEVICE, H200, replace(OPTIONS, executor="processes"))
    tools.executor = cast(Any, object())
    kept.rest(soon_again=True)
    assert log == ["begin", "end"]

"""A real engine process that is spoken to in its own protocol."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import psutil
import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.codec import Decoder, Unreadable, encode
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Document

from tests.support.clock import FILE_S
from tests.support.engine import command
from tests.support.forks import ForkServer

T = TypeVar("T")
PATIENCE_S = 90.0
COMMAND = (sys.executable, "-P", "-m", "mugraph.worker")


class Engine:
    """`heard` holds everything that came, in order; whatever is no message fails the test at once."""

    def __init__(self, root: Path, cache: Path, command: tuple[str, ...] = COMMAND) -> None:
        environment = {**os.environ, "MUGRAPH_CACHE_DIR": str(cache)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=root
        )
        self.heard: list[m.FromEngine] = []
        self.stray: list[Unreadable] = []
        self.stderr = bytearray()
        self.root = root
        self._inbox: queue.Queue[m.FromEngine | None] = queue.Queue()
        self._ids = iter(range(1, 1_000_000))
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def id(self) -> int:
        return next(self._ids)

    def hello(self, settings: EngineSettings | None = None) -> m.Ready:
        return self.ask(m.Hello(self.id(), root=str(self.root), settings=settings or quick()), m.Ready)

    def send(self, message: m.ToEngine) -> None:
        self.raw(encode(message))

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, message: m.ToEngine, answer: type[T], timeout_s: float = PATIENCE_S) -> T:
        """Sends it and waits for its answer."""
        self.send(message)
        id = cast(m.Ping, message).id
        found = self.until(
            lambda said: getattr(said, "id", None) == id and isinstance(said, (answer, m.Failed)), timeout_s
        )
        assert isinstance(found, answer), found
        return found

    def refused(self, message: m.ToEngine) -> str:
        return self.ask(message, m.Failed).message

    def search(self, document: Document, **more: object) -> m.Finished:
        return self.ask(m.Search(self.id(), document, **more), m.Finished)  # type: ignore[arg-type]

    def until(self, wanted: Callable[[m.FromEngine], bool], timeout_s: float = PATIENCE_S) -> m.FromEngine:
        """The next message like that."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                said = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not said in {timeout_s} s; heard {self.heard[-5:]}; {self.said()}") from None
            assert said is not None, f"the engine has ended: {self.said()}"
            self.heard.append(said)
            if wanted(said):
                return said

    def until_type(self, kind: type[T], timeout_s: float = PATIENCE_S) -> T:
        found = self.until(lambda said: isinstance(said, kind), timeout_s)
        assert isinstance(found, kind)
        return found

    def all_of(self, kind: type[T]) -> list[T]:
        return [said for said in self.heard if isinstance(said, kind)]

    def said(self) -> str:
        """What it wrote to standard error, its end."""
        return self.stderr.decode(errors="replace")[-2000:]

    def family(self) -> list[psutil.Process]:
        """It and all it has started."""
        front = psutil.Process(self.pid)
        return [front, *front.children(recursive=True)]

    def exit(self) -> int:
        self.send(m.Exit())
        return self.process.wait(5)

    def close(self) -> None:
        """Ends what is left of it."""
        family: list[psutil.Process] = []
        if self.process.poll() is None:
            family = self.family()
        for one in family:
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait(10)

    def _read(self) -> None:
        decoder: Decoder[m.FromEngine] = Decoder(cast(type[m.FromEngine], m.FromEngine))
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), 65536):
            for message in decoder.feed(data):
                if isinstance(message, Unreadable):
                    self.stray.append(message)
                else:
                    self._inbox.put(message)
        self._inbox.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 65536):
            self.stderr += data


def quick(budget_s: float = 2.0) -> EngineSettings:
    return EngineSettings(target="h100", budget_s=budget_s, file_budget_s=FILE_S, measure=False)


def gone(family: list[psutil.Process], within_s: float) -> list[psutil.Process]:
    """Who is still there after so long; zombies have ended."""
    deadline = time.monotonic() + within_s
    left = family
    while left and time.monotonic() < deadline:
        left = [one for one in left if lives(one)]
        time.sleep(0.02)
    return left


def lives(one: psutil.Process) -> bool:
    try:
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


Start = Callable[..., Engine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts engines; ends them after the test, which fails if one of them wrote anything but messages."""
    engines: list[Engine] = []

    def begin(start: tuple[str, ...] = COMMAND, cache: Path | None = None) -> Engine:
        root = tmp_path / "workspace"
        root.mkdir(exist_ok=True)
        engine = Engine(root, cache or tmp_path / "cache", start)
        engines.append(engine)
        return engine

    yield begin
    for engine in engines:
        engine.close()
    for engine in engines:
        assert engine.stray == []


@pytest.fixture
def engine(start: Start) -> Engine:
    """One that has been greeted."""
    engine = start()
    engine.hello()
    return engine


@pytest.fixture
def prepared(start: Start, tracing: ForkServer, interpreting: ForkServer) -> Engine:
    """The same, with children that need not import PyTorch."""
    engine = start(command(tracing.path, interpreting.path))
    engine.hello()
    return engine


def document(path: Path, text: str | None = None, version: int = 1) -> Document:
    return Document(path.as_uri(), str(path), version, text)

"""Turns of several runs on one device: who times is alone, the others go together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from mugraph import sharing
from mugraph.sharing import VARIABLE, Memory, beside, environment, is_waiting, memory, turn
from mugraph.stopwatch import Stopwatch


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(4, tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("shared")
def test_who_times_is_alone():
    inside: list[bool] = []
    seen: list[tuple[bool, list[bool]]] = []

    def take(alone: bool) -> None:
        for _ in range(5):
            with turn(alone=alone):
                inside.append(alone)
                time.sleep(0.002)
                seen.append((alone, list(inside)))
                inside.remove(alone)

    threads = [threading.Thread(target=take, args=(number % 2 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 30
    assert all(others == [True] for alone, others in seen if alone)
    assert not any(True in others for alone, others in seen if not alone)


@pytest.mark.usefixtures("shared")
def test_who_shares_goes_together():
    both = threading.Barrier(2, timeout=30)

    def take() -> None:
        with turn(alone=False):
            both.wait()

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not both.broken


_OTHER = """
import sys
from mugraph.sharing import turn
with turn(alone=sys.argv[1] == "alone"):
    print("in", flush=True)
    sys.stdin.read()
"""


class _Other:
    """Another process that takes a turn, until it is told to end."""

    def __init__(self, kind: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OTHER, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self.entered = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline():
            self.entered.set()

    def end(self) -> None:
        self._process.communicate()


@pytest.mark.usefixtures("shared")
def test_who_times_goes_first(tmp_path: Path):
    """Who launches waits until nobody times, or waits to; then all of them go together."""
    with turn(alone=True):
        sharing_ones = [_Other("shared") for _ in range(2)]
        while not all(is_waiting(tmp_path, one.pid) for one in sharing_ones):
            time.sleep(0.01)
        timing = _Other("alone")
        while not is_waiting(tmp_path, timing.pid):
            time.sleep(0.01)
    assert timing.entered.wait(30)
    assert not any(one.entered.is_set() for one in sharing_ones)
    timing.end()
    assert all(one.entered.wait(30) for one in sharing_ones)
    for one in sharing_ones:
        one.end()


@pytest.mark.usefixtures("shared")
def test_who_launches_does_not_come_in_before_one_who_waits_to_time(tmp_path: Path):
    with turn(alone=False):
        timing = _Other("alone")
        while not is_waiting(tmp_path, timing.pid):
            time.sleep(0.01)
        late = _Other("shared")
        while not is_waiting(tmp_path, late.pid):
            time.sleep(0.01)
        time.sleep(0.05)
        assert not late.entered.is_set()
    assert timing.entered.wait(30)
    assert not late.entered.is_set()
    timing.end()
    assert late.entered.wait(30)
    late.end()


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("alone", [False, True])
def test_seconds_of_waiting_count_for_themselves(alone: bool):
    other = _Other("alone")
    assert other.entered.wait(30)
    threading.Timer(0.5, other.end).start()
    watch, before = Stopwatch(), sharing.waited_s()
    with watch.on("verification"), turn(alone=alone, spent=watch):
        time.sleep(0.05)
    spent = watch.lap()
    assert spent["waiting"] > 0.3
    assert sharing.waited_s() - before == pytest.approx(spent["waiting"], abs=0.04)
    assert 0.05 <= spent["verification"] < spent["waiting"]


@pytest.mark.usefixtures("shared")
def test_seconds_of_waiting_count_once():
    """However many threads wait, and while they do."""
    other, before = _Other("alone"), sharing.waited_s()
    assert other.entered.wait(30)

    def take() -> None:
        with turn(alone=False):
            pass

    threads = [threading.Thread(target=take) for _ in range(3)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    assert 0.2 < sharing.waited_s() - before <= time.monotonic() - began
    other.end()
    for thread in threads:
        thread.join(30)
    assert sharing.waited_s() - before <= time.monotonic() - began


def test_one_run_takes_no_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert environment(1, tmp_path) == {}
    monkeypatch.delenv(VARIABLE, raising=False)
    assert beside() == 1
    with turn(alone=True), turn(alone=True):
        assert not os.listdir(tmp_path)


def test_memory_is_promised_once(tmp_path: Path):
    """Whoever is inside together needs no more than there is; who needs more than there is comes in alone."""
    inside: list[float] = []
    seen: list[list[float]] = []
    lock = threading.Lock()

    def take(share: float) -> None:
        for _ in range(4):
            own = Memory(share)
            own.hold(tmp_path)
            with lock:
                inside.append(share)
                seen.append(list(inside))
            time.sleep(0.002)
            with lock:
                inside.remove(share)
            own.release()

    shares = (0.25, 0.25, 0.5, 0.75, 2.0)
    threads = [threading.Thread(target=take, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 4 * len(shares)
    assert all(sum(min(share, 1.0) for share in together) <= 1.0 for together in seen)
    small = Memory(0.01), Memory(1.0), Memory(0.0)
    for one in small:
        one.hold(tmp_path)  # what is small takes none
    for one in small:
        one.release()


@pytest.mark.usefixtures("shared")
def test_memory_is_held_from_the_first_turn_on(tmp_path: Path):
    early, other = Memory(1.0), Memory(1.0)
    with memory(1.0):
        early.hold(tmp_path)  # nothing has run on the device yet
        early.release()
        with turn(alone=False):
            waits = threading.Thread(target=other.hold, args=(tmp_path,), daemon=True)
            waits.start()
        waits.join(0.3)
        assert waits.is_alive()
        with turn(alone=True):
            pass
    waits.join(30)
    assert not waits.is_alive()
    other.release()


def test_one_run_has_all_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with memory(1.0), memory(1.0):
        pass

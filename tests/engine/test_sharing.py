"""Turns of several runs on one device: who times is alone, the others go together."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from mugraph.sharing import VARIABLE, beside, environment, memory, turn


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


def test_one_run_takes_no_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert environment(1, tmp_path) == {}
    monkeypatch.delenv(VARIABLE, raising=False)
    assert beside() == 1
    with turn(alone=True), turn(alone=True):
        assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("shared")
def test_memory_is_promised_once():
    """Whoever is inside together needs no more than there is; who needs more than there is comes in alone."""
    inside: list[float] = []
    seen: list[list[float]] = []
    lock = threading.Lock()

    def take(share: float) -> None:
        for _ in range(4):
            with memory(share):
                with lock:
                    inside.append(share)
                    seen.append(list(inside))
                time.sleep(0.002)
                with lock:
                    inside.remove(share)

    shares = (0.25, 0.25, 0.5, 0.75, 2.0)
    threads = [threading.Thread(target=take, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 4 * len(shares)
    assert all(sum(min(share, 1.0) for share in together) <= 1.0 for together in seen)
    with memory(0.0), memory(1.0), memory(0.01):
        pass  # what is small takes none


def test_one_run_has_all_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with memory(1.0), memory(1.0):
        pass

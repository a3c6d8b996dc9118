"""One question for all dictionaries that guards rely on. From Python 3.12 on it is in use; before, every change of any
dictionary is told, which is as sound."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest


@pytest.fixture
def tick(gated_file, maker, source, part, load, monkeypatch) -> Any:
    from mugraph.edit.apply import apply_files

    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    kernels = load(gated_file).kernels
    monkeypatch.setattr(kernels, "_CLOCKED", (3, 11))
    found = kernels._clock()
    if found() == 0:
        pytest.skip("this Python's changes are not numbered one after the other")
    return found, kernels._version


def test_in_use_where_it_is_of_use(gated_file, maker, source, part, load) -> None:
    from mugraph.edit.apply import apply_files

    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    kernels = load(gated_file).kernels
    assert (kernels._tick() > 0) == (sys.version_info >= (3, 12))


def test_a_change_of_any_watched_dictionary_is_told(tick) -> None:
    ask, version = tick
    watched = [{"a": 1} for _ in range(3)]
    seen: set[int] = set()
    for number, own in enumerate(watched):
        version(own)
        ask()
        before = ask()
        own["a"] = number + 7
        after = ask()
        assert after != before
        seen |= {before, after}
    assert len(seen) >= 4


def test_a_change_while_threads_ask_is_told(tick) -> None:
    ask, version = tick
    watched, stop = {"a": 0}, threading.Event()
    version(watched)

    def asking() -> None:
        while not stop.is_set():
            ask()

    threads = [threading.Thread(target=asking) for _ in range(3)]
    for one in threads:
        one.start()
    try:
        for number in range(1, 300):
            before = ask()
            watched["a"] = number
            assert ask() != before
    finally:
        stop.set()
        for one in threads:
            one.join()

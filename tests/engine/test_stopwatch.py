"""Where seconds go: each moment counts for one thing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mugraph.reports.text import spent_text
from mugraph.stopwatch import Stopwatch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_within_something_counts_for_itself_alone() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    clock.now = 1.0  # nobody says what this was
    with watch.on("search"):
        clock.now = 3.0
        with watch.on("verification"):
            clock.now = 4.0
        clock.now = 6.0
    assert watch.lap() == {"search": 4.0, "verification": 1.0}
    assert watch.lap() == {}


def test_what_fails_is_timed_too() -> None:
    clock = Clock()
    watch = Stopwatch(clock)

    def work() -> None:
        with watch.on("search"):
            clock.now = 2.0
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        work()
    clock.now = 5.0
    assert watch.lap() == {"search": 2.0}


def test_other_threads_do_not_count() -> None:
    clock = Clock()
    watch = Stopwatch(clock)

    def work() -> None:
        with watch.on("measuring"):
            clock.now = 7.0

    with watch.on("search"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert watch.lap() == {"search": 7.0}


def test_in_words() -> None:
    text = spent_text({"search": 3.4, "measuring": 0.01, "peers": 2.0}, 1.2)
    assert text == "trace 1.2 s (of the whole file), search 3.4 s, peers 2.0 s"


def test_another_thread_may_have_made_it() -> None:
    now = [0.0]
    with ThreadPoolExecutor(1) as thread:
        watch = thread.submit(Stopwatch, lambda: now[0]).result()
        now[0] = 5.0
        watch.here()
        with watch.on("search"):
            now[0] = 7.0
        assert watch.lap() == {"search": 2.0}
        thread.submit(_within, watch, now).result()
    assert watch.lap().get("search", 0.0) == 0.0


def _within(watch: Stopwatch, now: list[float]) -> None:
    with watch.on("search"):
        now[0] += 3.0

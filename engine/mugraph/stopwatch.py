"""Where the seconds of a run go, by what was done in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager


class Stopwatch:
    """Of one thread: what others do meanwhile does not count. What is done within something else counts for itself
    alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent: dict[str, float] = {}
        self._now = ""
        self._since = clock()
        self._thread = threading.get_ident()

    def here(self) -> None:
        """From now on, this thread's seconds count."""
        self._thread, self._since = threading.get_ident(), self._clock()

    @contextmanager
    def on(self, what: str) -> Generator[None]:
        """Seconds inside count for `what`."""
        if threading.get_ident() != self._thread:
            yield
            return
        before = self._now
        self._switch(what)
        try:
            yield
        finally:
            self._switch(before)

    def add(self, spent: Mapping[str, float]) -> None:
        """Seconds of another process."""
        for what, seconds in spent.items():
            self._spent[what] = self._spent.get(what, 0.0) + seconds

    def lap(self) -> Mapping[str, float]:
        """The seconds since the last lap."""
        self._switch(self._now)
        spent, self._spent = self._spent, {}
        spent.pop("", None)
        return spent

    def _switch(self, what: str) -> None:
        now = self._clock()
        self._spent[self._now] = self._spent.get(self._now, 0.0) + now - self._since
        self._now, self._since = what, now

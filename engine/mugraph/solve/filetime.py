"""The seconds that a whole file may be searched for. What is measured on a device does not count."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from math import inf


class FileTime:
    """limit_s: once so many seconds were counted, no further search unit is begun"""

    def __init__(self, limit_s: float = inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._spent_s = 0.0
        self._since: float | None = None

    @contextlib.contextmanager
    def counting(self) -> Generator[None]:
        """Seconds inside count; once, where one is within another."""
        if self._since is not None:
            yield
            return
        self._since = self._clock()
        try:
            yield
        finally:
            self._spent_s += self._clock() - self._since
            self._since = None

    @property
    def is_over(self) -> bool:
        running = self._clock() - self._since if self._since is not None else 0.0
        return self._spent_s + running >= self._limit_s

    @property
    def words(self) -> str:
        """Why a search unit was not begun."""
        return (
            f"not searched: the {self._limit_s:g} s for the search of a file were over"
            " (--file-budget SECONDS gives it more)"
        )

"""The seconds that a whole file may take: its tracing, where a person waits for it, and its search. Where search units
are measured one after the other in the order of what they may gain (in_turn.py), that counts as well; of a file with
one unit, what is measured does not.

A search unit that is begun late gets what is left. One that is not done a little after the end hands over what it has
found, and one that does not do that either is given up: the seconds are a promise to whoever waits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from math import inf

_OVER = 1.1
"""Of its seconds, after which what is still worked on is given up. A step that was begun before the end is done by
then."""
_PEERS = 1.25
"""Of its seconds, after which nobody waits any more for what kernels are compared with besides the code as it runs."""
_TRACING = 1 / 3
"""Of its seconds, the most that tracing takes: a file that imports much is still searched."""


class FileTime:
    """limit_s: once so many seconds were counted, no further search unit is begun
    waited_s:  seconds so far that do not count, for which others had the device"""

    def __init__(
        self,
        limit_s: float = inf,
        clock: Callable[[], float] = time.monotonic,
        waited_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._limit_s, self._clock, self._waited_s = limit_s, clock, waited_s
        self._spent_s = 0.0
        self._since: float | None = None

    @contextlib.contextmanager
    def counting(self) -> Generator[None]:
        """Seconds inside count; once, where one is within another."""
        if self._since is not None:
            yield
            return
        self._since = self.own_clock()
        try:
            yield
        finally:
            self._spent_s += self.own_clock() - self._since
            self._since = None

    def traced(self, seconds: float) -> None:
        """The file was traced for so long."""
        self._spent_s += min(seconds, _TRACING * self._limit_s)

    def own_clock(self) -> float:
        """Stands still while others have the device."""
        return self._clock() - self._waited_s()

    @property
    def left_s(self) -> float:
        """Below 0 when it is over."""
        running = self.own_clock() - self._since if self._since is not None else 0.0
        return self._limit_s - self._spent_s - running

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    @property
    def stops_at(self) -> float:
        """By its clock, when whoever is at work hands over what there is, if all seconds until then count."""
        return self._clock() + self.left_s

    @property
    def is_long_over(self) -> bool:
        """Whoever is still at work is to be stopped."""
        return -self.left_s >= (_OVER - 1) * self._limit_s

    @property
    def is_too_late_for_peers(self) -> bool:
        """What is not compiled by then has no time."""
        return -self.left_s >= (_PEERS - 1) * self._limit_s

    @property
    def words(self) -> str:
        """Why a search unit was not begun."""
        return f"not searched: {self._over}"

    @property
    def given_up_words(self) -> str:
        """Why a search unit that was begun has no result."""
        return f"begun and not finished: {self._over}"

    @property
    def _over(self) -> str:
        return f"the {round(self._limit_s, 1):g} s for the file were over (--file-budget SECONDS gives it more)"

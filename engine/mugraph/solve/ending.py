"""When a search unit has to come to its end, so that what it has found by then is tested and not lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

SEARCHED = 0.6
"""Of the seconds that are left, what may be searched for; the tests take the rest."""


class Ending:
    """Made when the unit begins.

    stops_at: by `clock`, when the unit has to hand over what it has found. The processes of a machine share the default
              one
    search_s: that it may look for something new, scheduling included, where others have to have their part
    """

    def __init__(
        self, stops_at: float = inf, clock: Callable[[], float] = time.monotonic, search_s: float = inf
    ) -> None:
        self._stops_at, self._clock = stops_at, clock
        now = clock()
        self._tests_at = now + min(search_s, SEARCHED * max(0.0, stops_at - now))

    @property
    def is_set(self) -> bool:
        return self._stops_at < inf

    @property
    def search_s(self) -> float:
        """Until then something new may be looked for: afterwards the best so far is tested. Not below 0."""
        return max(0.0, self._tests_at - self._clock())

    @property
    def left_s(self) -> float:
        """Until it is over; not below 0."""
        return max(0.0, self._stops_at - self._clock())

    @property
    def is_near(self) -> bool:
        """Nothing new is to be looked for."""
        return self._clock() >= self._tests_at

    @property
    def is_over(self) -> bool:
        """Nothing is to be tested any more."""
        return self._clock() >= self._stops_at


NO_END = Ending()
UNTESTED = (
    "verified, but its kernel was not tested to the end: the seconds for the file were over (--file-budget "
    "SECONDS gives it more)"
)
"""Why a search unit has a kernel that is shown and not offered."""

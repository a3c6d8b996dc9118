"""A question to another process, given up by a thread that does not wait for it: of a search that is cancelled."""

from __future__ import annotations

import threading

LOOK_S = 0.02
"""Seconds between two looks at whether to go on waiting."""
WORDS = "it was given up: the search was cancelled"


class GivingUp:
    """While it is on, whatever has been asked is given up and nothing new is asked. One for all that a run works with;
    any thread may switch it."""

    def __init__(self) -> None:
        self._on = threading.Event()

    @property
    def on(self) -> bool:
        return self._on.is_set()

    def begin(self) -> None:
        self._on.set()

    def end(self) -> None:
        self._on.clear()

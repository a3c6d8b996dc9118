"""Why calls have no tensor program."""

from __future__ import annotations


class NotLowerable(Exception):
    """These calls have no tensor program; the message is one sentence saying why."""


class Duplicated(NotLowerable):
    """One program would have to compute `value` twice, under two sets of axes: it should be loaded instead."""

    def __init__(self, value: int) -> None:
        super().__init__(f"value {value} would be computed twice, once for each of its roles; it must be loaded")
        self.value = value

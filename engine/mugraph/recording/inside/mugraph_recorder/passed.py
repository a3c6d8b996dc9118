"""What the recorder had to pass over, so that the user's program goes on: how often, of what, and why."""

from __future__ import annotations

MOST = 100
"""Reasons that are kept apart."""
LONGEST = 200

Over = tuple[str, str, str, str]
"""A file of the user's and a function in it ("" and "" for what is of no function), what was passed over, why."""


class Passed:
    """counts: of each, how often"""

    def __init__(self) -> None:
        self.counts: dict[Over, int] = {}

    def note(self, file: str, function: str, what: str, error: BaseException) -> None:
        over = file, function, what, reason(error)
        if over not in self.counts and len(self.counts) >= MOST:
            over = "", "", what, "other reasons"
        self.counts[over] = self.counts.get(over, 0) + 1

    def forked(self) -> None:
        """In a child made by fork: what its parent counts is not counted twice."""
        self.counts.clear()


def reason(error: BaseException) -> str:
    """The error's type and text. Its own `__str__` is not asked: it may be the user's, and raise again."""
    text = next((" ".join(one.split()) for one in error.args if type(one) is str), "")
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"

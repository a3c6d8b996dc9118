"""The user's code, run by this project, may call this project: a script that is traced reaches the `mugraph.optimize`
that had it traced.

Of such a script all that stands before the call has run by then, as it had in the program that made the call. So the
run of the file ends there. Calls for other functions give these back as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator


class Reached(BaseException):
    """The call that the run is for. No Exception: the user's code must not catch it."""


_wanted: Collection[str] | None = None


@contextlib.contextmanager
def until_called_for(wanted: Collection[str]) -> Generator[None]:
    """Inside, the user's code runs: a call for one of these functions raises Reached. wanted: qualified names"""
    global _wanted
    before, _wanted = _wanted, wanted
    try:
        yield
    finally:
        _wanted = before


def is_nested(qualname: str) -> bool:
    """Whether a call for this function is made by code that is run to be looked at. Raises Reached where the run is for
    this call."""
    if _wanted is not None and qualname in _wanted:
        raise Reached
    return _wanted is not None

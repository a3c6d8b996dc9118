"""Python's frames, as they are while the program runs."""

from __future__ import annotations

import sys
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FrameType


def frame_of_caller(above: int) -> FrameType:
    """The frame of whoever called the function that asks; above: 1, or more for its callers higher up."""
    return sys._getframe(above + 1)  # pyright: ignore[reportPrivateUsage]


def keywords_of(frame: FrameType) -> object:
    """The dictionary that `**name` collects, made anew for each call; None for a function that has none."""
    code = frame.f_code
    if not code.co_flags & CO_VARKEYWORDS:
        return None
    position = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)
    return frame.f_locals.get(code.co_varnames[position])

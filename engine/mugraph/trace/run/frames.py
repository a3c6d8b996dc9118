"""Python's frames, as they are while the program runs."""

from __future__ import annotations

import sys
from types import FrameType


def frame_of_caller(above: int) -> FrameType:
    """The frame of whoever called the function that asks; above: 1, or more for its callers higher up."""
    return sys._getframe(above + 1)  # pyright: ignore[reportPrivateUsage]

"""Stands for numba where it is imported and not needed."""

from __future__ import annotations

from collections.abc import Callable


def jit(*_: object, **__: object) -> Callable[[object], object]:
    return lambda function: function

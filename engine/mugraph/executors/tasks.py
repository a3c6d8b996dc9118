"""Work that is one question and one answer, for whatever worker is free."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Task(Protocol[T_co]):
    """Work that can be sent to another process. Equal tasks have equal answers, so a task may be done again
    elsewhere."""

    def run(self) -> T_co: ...

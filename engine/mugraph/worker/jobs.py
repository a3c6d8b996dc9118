"""Jobs and whose turn it is: the just-saved, then the visible, then the rest; among equals the first come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mugraph.protocol.messages import Find, Search
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Priority
from mugraph.worker.documents import Known

Ending = Literal["cancelled", "superseded", "put back"]
_RANK: dict[Priority, int] = {"background": 0, "visible": 1, "saved": 2}


@dataclass(eq=False)
class Job:
    """
    order:     when it came
    run:       number of what the runner does for it now; None while it waits
    ending:    why it is being stopped
    settings:  that it began with
    known:     its document, traced
    all_ways:  it was traced for all ways in which its functions were called
    numbers:   the regions that are searched, as positions in the trace; None before it has come so far
    searched:  keys of regions whose search has ended
    searching: key of the region that is being searched
    began:     of its work, by time.monotonic
    message:   what the user should know at the end
    """

    request: Find | Search
    order: int
    priority: Priority
    run: int | None = None
    ending: Ending | None = None
    settings: EngineSettings = field(default_factory=EngineSettings)
    known: Known | None = None
    all_ways: bool = False
    numbers: list[int] | None = None
    searched: set[str] = field(default_factory=set[str])
    searching: str | None = None
    began: float = field(default_factory=time.monotonic)
    message: str = ""

    @property
    def uri(self) -> str:
        return self.request.document.uri

    @property
    def version(self) -> int:
        return self.request.document.version


class JobQueue:
    """Jobs that wait."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        """In the order of their turns."""
        return iter(sorted(self._jobs, key=lambda job: (-_RANK[job.priority], job.order)))

    def add(self, job: Job) -> None:
        self._jobs.append(job)

    def take(self) -> Job | None:
        first = next(iter(self), None)
        if first is not None:
            self._jobs.remove(first)
        return first

    def remove(self, job: Job) -> None:
        self._jobs.remove(job)

    def more_urgent_than(self, job: Job) -> bool:
        """Whether one waits that a background job has to make room for."""
        first = next(iter(self), None)
        return first is not None and job.priority == "background" and _RANK[first.priority] > 0

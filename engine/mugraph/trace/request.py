"""What the process that runs the user's code is asked."""

from __future__ import annotations

import msgspec

from mugraph.trace.picture import Picture, imported_as


class Request(msgspec.Struct, frozen=True):
    """source: the text to trace if it is not what the file holds. recorded, pictures: calls of a run, in words and as
    they were. callers: files that call this one's functions; they are run while functions of it are left that nothing
    has called. all_callers: each of them is. check: run on real tensors and replay each region. names: tell the names
    of PyTorch's functions."""

    path: str
    source: str | None = None
    qualname: str | None = None
    recorded: dict[str, dict[str, str]] | None = None
    pictures: dict[str, Picture] = {}
    callers: list[str] = []
    all_callers: bool = False
    check: bool = False
    names: bool = False

    @property
    def imported_as(self) -> str | None:
        return imported_as(self.pictures)

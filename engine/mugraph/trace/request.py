"""What the process that runs the user's code is asked."""

from __future__ import annotations

import msgspec

from mugraph.trace.picture import Picture


class Request(msgspec.Struct, frozen=True):
    """source: the text to trace if it is not what the file holds. recorded, pictures: calls of a run, in words and as
    they were. check: run on real tensors and replay each region. names: tell the names of PyTorch's functions."""

    path: str
    source: str | None = None
    qualname: str | None = None
    recorded: dict[str, dict[str, str]] | None = None
    pictures: dict[str, Picture] = {}
    check: bool = False
    names: bool = False

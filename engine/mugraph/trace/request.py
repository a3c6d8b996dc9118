"""What the process that runs the user's code is asked."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True):
    """source: the text to trace if it is not what the file holds. check: run on real tensors and replay each region."""

    path: str
    source: str | None = None
    qualname: str | None = None
    recorded: dict[str, dict[str, str]] | None = None
    check: bool = False

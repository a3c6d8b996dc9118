"""What the forkserver is asked for, a line each."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

END = b"end\n"
"""Kill the process that traces now."""


class Order(msgspec.Struct, frozen=True):
    """arguments: of `child.main`. said: the file that standard error goes to. folder: the current one"""

    arguments: tuple[str, str]
    said: str
    folder: str
    environment: Mapping[str, str]

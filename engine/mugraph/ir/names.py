"""Names: any text as a Python identifier, and names that are unique."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "torch", "triton", "tl", "self"})


def identifier(text: str) -> str:
    """`text` as a Python identifier: other characters become underscores, and a leading digit gets one before it."""
    name = re.sub(r"\W+", "_", text).strip("_") or "value"
    return f"_{name}" if name[0].isdigit() else name


class Scope:
    """Hands out names that are unique, no keywords, no builtins and none of `taken`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken) | RESERVED

    def unique(self, wanted: str) -> str:
        base = identifier(wanted)
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name

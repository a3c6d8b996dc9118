"""Short, readable, unique names for axes, values and tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword

_RESERVED = frozenset({"tl", "triton", "torch"})
_POOL = "nmkrhdpqcuvwijstbegf"


class Names:
    """Hands out identifiers that were not used before."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    def copy(self) -> Names:
        """Another one that knows what was handed out so far."""
        return Names(self._used)

    def take(self, wish: str) -> str:
        """`wish` itself, or with a number behind it."""
        name, count = wish, 1
        while name in self._used:
            count += 1
            name = f"{wish}_{count}"
        self._used.add(name)
        return name

    def first(self, wishes: Iterable[str]) -> str | None:
        """The first wish that is free, if one is."""
        name = next((wish for wish in wishes if wish not in self._used), None)
        return None if name is None else self.take(name)

    def letter(self) -> str:
        """Any letter that is free."""
        return self.first(_POOL) or self.take("a")


def identifier(expression: str) -> str:
    """A Python identifier for what the user calls something: `self.norm.weight` -> `norm_weight`."""
    text = re.sub(r"\W+", "_", expression.removeprefix("self.")).strip("_")
    text = re.sub(r"^(?=\d)", "v", text) or "value"
    return f"{text}_" if iskeyword(text) or text in _RESERVED else text

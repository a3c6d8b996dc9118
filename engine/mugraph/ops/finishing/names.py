"""Short, readable, unique names for axes, values and tensors."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir import names
from mugraph.ir.names import numbered, take
from mugraph.ir.numbers import called

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
        return take(numbered(wish), self._used)

    def first(self, wishes: Iterable[str]) -> str | None:
        """The first wish that is free, if one is."""
        name = next((wish for wish in wishes if wish not in self._used), None)
        return None if name is None else self.take(name)

    def letter(self) -> str:
        """Any letter that is free."""
        return self.first(_POOL) or self.take("a")


def identifier(expression: str) -> str:
    """A Python identifier for what the user calls something: `self.norm.weight` -> `norm_weight`."""
    text = names.identifier(called(expression).removeprefix("self."))
    text = f"v{text[1:]}" if text.startswith("_") else text  # it begins with a digit
    return f"{text}_" if text in names.UNUSABLE else text

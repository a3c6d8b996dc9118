"""Names: any text as a Python identifier, and names that are unique."""

from __future__ import annotations

import builtins
import itertools
import keyword
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator

_MODULES = frozenset({"torch", "triton", "tl"})
"""What generated modules import."""
UNUSABLE = frozenset({*keyword.kwlist, *_MODULES})
"""Names that no value of a graph is given."""
RESERVED = frozenset({*UNUSABLE, *keyword.softkwlist, *dir(builtins), "self"})
"""Names that generated text leaves to Python."""


def identifier(text: str) -> str:
    """`text` as a Python identifier of ASCII letters, as PyTorch asks of operators: letters lose their accents, other
    characters become underscores, and a leading digit gets one before it."""
    if not text.isascii():
        text = "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
    return f"_{name}" if name[0].isdigit() else name


def numbered(name: str) -> Iterator[str]:
    """x, x_2, x_3, ..."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


def underscored(name: str) -> Iterator[str]:
    """x, x_, x__, ..."""
    return (name + "_" * count for count in itertools.count())


def unused(spellings: Iterable[str], taken: Container[str]) -> str:
    """The first spelling that is not taken."""
    return next(name for name in spellings if name not in taken)


def take(spellings: Iterable[str], taken: set[str]) -> str:
    """The first spelling that was not taken; now it is."""
    name = unused(spellings, taken)
    taken.add(name)
    return name


class Scope:
    """Hands out names that are unique, no keywords, no builtins and none of `taken`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken) | RESERVED

    def unique(self, wanted: str) -> str:
        return take(numbered(identifier(wanted)), self._taken)

    def inner(self) -> Scope:
        """A scope in this one: its names are taken there, and what it hands out is not taken here."""
        return Scope(self._taken)

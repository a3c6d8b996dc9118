"""What a setting is, and the kinds of values that settings have: how each is read, and its schema in the extension."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from mugraph.protocol.targets import NAMES, PATTERN, is_target


class Values(ABC):
    """The values that one setting can have."""

    @abstractmethod
    def read(self, given: object) -> object:
        """The value that the editor sent. Raises ValueError with what it must be."""

    def needed(self, value: object) -> str | None:
        """What the value has to be, if the engine cannot work with it. `read` refuses more: what a person may not
        set."""
        return None

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, object]:
        """The JSON schema in the extension's package.json."""


@dataclass(frozen=True)
class Setting:
    """Declares one setting. Its name in Python, its type and its default are those of the field that it annotates.

    key:        in the editor, after `mugraph.`; "" where editors have no such setting
    says:       its description in the editor, Markdown
    scope:      whether it can differ between folders; None where it is no configuration: the client tells it as state
    order:      its place among the others in the editor
    restricted: not taken from a workspace that is not trusted, as it decides what is run
    again:      whether open files are analysed again when it changes; a value: only if it changes to this value or
                away from it
    called:     in the engine's sentence about a wrong value
    option:     of the command line, and its help; one that begins with --no- stands for False
    """

    key: str
    values: Values
    says: str = ""
    scope: Literal["resource", "window"] | None = "resource"
    order: int = 0
    restricted: bool = False
    again: bool | str = False
    called: str = ""
    option: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Flag(Values):
    def read(self, given: object) -> bool:
        if not isinstance(given, bool):
            raise ValueError("must be true or false")
        return given

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text(Values):
    def read(self, given: object) -> str:
        if not isinstance(given, str):
            raise ValueError("must be a string")
        return given.strip()

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "string"}


@dataclass(frozen=True)
class CommandLine(Values):
    """As one string, quoted as in a shell, or as a list."""

    def read(self, given: object) -> tuple[str, ...]:
        if isinstance(given, str):
            try:
                return tuple(shlex.split(given))
            except ValueError:
                raise ValueError("has a quotation mark without its partner") from None
        if isinstance(given, list) and all(isinstance(part, str) for part in cast("list[object]", given)):
            return tuple(cast("list[str]", given))
        raise ValueError("must be a command line or a list of strings")

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": ("string", "array"), "items": {"type": "string"}}


@dataclass(frozen=True)
class Target(Values):
    """The engine says itself which of them it can make kernels for."""

    def read(self, given: object) -> str:
        text = Text().read(given).lower()
        if is_target(text):
            return text
        raise ValueError(f"must be {NAMES}")

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "string", "pattern": PATTERN, "patternErrorMessage": NAMES}


@dataclass(frozen=True)
class Seconds(Values):
    """least, most: that a person can set."""

    least: float = 0.1
    most: float = 86_400

    def read(self, given: object) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not self.least <= given <= self.most:
            raise ValueError(f"must be a number of seconds from {self.least:g} to {self.most:.0f}")
        return float(given)

    def needed(self, value: object) -> str | None:
        return None if isinstance(value, int | float) and value > 0 else "a number of seconds above 0"

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Count(Values):
    """least, most: that a person can set."""

    least: int = 1
    most: int = 100

    def read(self, given: object) -> int:
        if isinstance(given, bool) or not isinstance(given, int) or not self.least <= given <= self.most:
            raise ValueError(f"must be a whole number from {self.least} to {self.most}")
        return given

    def needed(self, value: object) -> str | None:
        return None if isinstance(value, int) and value >= self.least else f"{self.least} at least"

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class OneOf(Values):
    """meanings: of the allowed values, in their order, where the editor shows them"""

    allowed: tuple[str, ...]
    meanings: tuple[str, ...] = ()

    def read(self, given: object) -> str:
        if not isinstance(given, str) or given not in self.allowed:
            raise ValueError(f"must be {self._words}")
        return given

    def needed(self, value: object) -> str | None:
        return None if value in self.allowed else self._words

    @property
    def schema(self) -> Mapping[str, object]:
        shown = {"enumDescriptions": self.meanings} if self.meanings else {}
        return {"type": "string", "enum": self.allowed, **shown}

    @property
    def _words(self) -> str:
        *others, last = self.allowed
        return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class SomeOf(Values):
    """Any of the allowed values, in one text with commas between them."""

    allowed: tuple[str, ...]

    def read(self, given: object) -> str:
        if not isinstance(given, str) or self.needed(given) is not None:
            raise ValueError(f"must be {self._words}")
        return given

    def needed(self, value: object) -> str | None:
        return None if isinstance(value, str) and chosen(value) <= {*self.allowed} else self._words

    @property
    def schema(self) -> Mapping[str, object]:
        return {"type": "string"}

    @property
    def _words(self) -> str:
        return f"some of {', '.join(self.allowed)}, with commas between them"


def chosen(text: str) -> frozenset[str]:
    """The values that a text of SomeOf names."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())

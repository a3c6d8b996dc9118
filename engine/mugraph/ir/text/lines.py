"""Lines of the text form: which comes next, and what is said of one that is not understood."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NoReturn, cast


class TextError(ValueError):
    """The text is no program; the message starts with the line number (1-based)."""


NAME = r"[^\s,()\[\]{}=:/*\"]+"
OP = re.compile(rf"({NAME})\[([^\]]*)\](?:: ([\w. ]+))? = ({NAME})\(([^()]*)\)(?:  (.+))?")


@dataclass(frozen=True)
class Line:
    number: int
    indent: int
    text: str

    @property
    def keyword(self) -> str:
        return "" if OP.fullmatch(self.text) else self.text.split(" ", 1)[0]

    @property
    def rest(self) -> str:
        return self.text.partition(" ")[2]

    def fail(self, message: str) -> NoReturn:
        raise TextError(f"line {self.number}: {message}")

    def match(self, pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
        found = pattern.fullmatch(text)
        return found if found else self.fail(f"{text!r} is not {what}")

    def integer(self, text: str) -> int:
        return int(text) if re.fullmatch(r"-?\d+", text) else self.fail(f"{text!r} is no integer")

    def decimal(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            self.fail(f"{text!r} is no number")

    def string(self, text: str) -> str:
        try:
            return cast("str", json.loads(text))
        except json.JSONDecodeError:
            self.fail(f"{text} is no string")


@dataclass
class Lines:
    """What is still to be read."""

    lines: list[Line]
    last: int
    at: int = 0

    def has(self, *keywords: str) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].keyword in keywords

    def take(self, keyword: str) -> Line:
        if not self.has(keyword):
            where = self.lines[self.at] if self.at < len(self.lines) else Line(self.last, 0, "the end")
            where.fail(f"expected `{keyword}`, found {where.text!r}")
        self.at += 1
        return self.lines[self.at - 1]

    def end(self) -> None:
        if self.at < len(self.lines):
            line = self.lines[self.at]
            line.fail(f"{line.text!r} is not understood here")


def read_lines(text: str, keyword: str) -> Lines:
    """Lines that hold something, without comments. Raises TextError where there are none.

    keyword: what the first line was expected to be
    """
    lines = [
        Line(number, len(raw) - len(raw.lstrip(" ")), raw.strip())
        for number, raw in enumerate(text.splitlines(), 1)
        if raw.strip() and not raw.lstrip().startswith("#")
    ]
    if not lines:
        raise TextError(f"line 1: expected `{keyword}`, found nothing")
    return Lines(lines, lines[-1].number)


def listed(text: str, separator: str = ",") -> tuple[str, ...]:
    """The names of a list: `x, w`."""
    return tuple(part.strip() for part in text.split(separator)) if text.strip() else ()

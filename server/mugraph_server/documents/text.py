"""A text that is edited in place by LSP's rules: lines end at \\n, \\r\\n or \\r, nowhere else; columns count UTF-16.

Python's own splitlines() also splits at form feeds and Unicode separators, which editors do not: the two would drift
apart in any file that holds one.
"""

from __future__ import annotations

import re

from lsprotocol.types import Position, Range

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def split_lines(text: str) -> list[str]:
    """Every line with its own end; the last one has none and may be empty, so there is always one."""
    if "\r" not in text:
        parts = text.split("\n")
        return [part + "\n" for part in parts[:-1]] + parts[-1:]
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines


def utf16_length(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)


def from_utf16(line: str, character: int) -> int:
    """Index into `line` of a UTF-16 column. Past the end is the end; the middle of a surrogate pair is its start."""
    if character <= 0:
        return 0
    if line.isascii():
        return min(character, len(line))
    units = 0
    for index, char in enumerate(line):
        units += 2 if char > "\uffff" else 1
        if units > character:
            return index
    return len(line)


class Text:
    """The lines of one document."""

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        self._joined: str | None = text

    @property
    def lines(self) -> list[str]:
        """For reading only."""
        return self._lines

    def __str__(self) -> str:
        if self._joined is None:
            self._joined = "".join(self._lines)
        return self._joined

    def line(self, number: int) -> str:
        """Without its end; "" where there is none."""
        return self._lines[number].rstrip("\r\n") if 0 <= number < len(self._lines) else ""

    def end(self) -> Position:
        return Position(len(self._lines) - 1, utf16_length(self._lines[-1]))

    def index(self, position: Position) -> tuple[int, int]:
        """Line and column in code points, brought inside the text as LSP demands."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        return position.line, from_utf16(self.line(position.line), position.character)

    def slice(self, span: Range) -> str:
        (first, start), (last, end) = sorted((self.index(span.start), self.index(span.end)))
        if first == last:
            return self._lines[first][start:end]
        return "".join([self._lines[first][start:], *self._lines[first + 1 : last], self._lines[last][:end]])

    def replace(self, span: Range, text: str) -> Range:
        """Put `text` in the place of `span`; the span as it was understood, in UTF-16 columns."""
        (first, start), (last, end) = sorted((self.index(span.start), self.index(span.end)))
        understood = Range(
            Position(first, utf16_length(self._lines[first][:start])),
            Position(last, utf16_length(self._lines[last][:end])),
        )
        before, after = self._lines[first][:start], self._lines[last][end:]
        if first and self._lines[first - 1].endswith("\r"):  # a \n that now follows it makes one line end of the two
            first -= 1
            before = self._lines[first] + before
        lines = split_lines(before + text + after)
        if last + 1 < len(self._lines):
            lines.pop()  # `after` brought its line's end along: what follows that is the next line, still in place
        self._lines[first : last + 1] = lines
        self._joined = None
        return understood

    def assign(self, text: str) -> None:
        self._lines = split_lines(text)
        self._joined = text

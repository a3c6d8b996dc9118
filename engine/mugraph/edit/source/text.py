"""A Python source file as text that can be edited and written back with the same encoding, BOM and line ends."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from dataclasses import dataclass, replace
from functools import cached_property

from mugraph.ir.region import Position

_LINE_END = re.compile(r"\r\n|\r|\n")


class EditError(Exception):
    """The edit, or its undoing, cannot be made; nothing was written. The message is one sentence for the user."""


@dataclass(frozen=True)
class SourceFile:
    """
    text:     decoded, without BOM. With "\\n" line ends if `newline` is set.
    newline:  the one kind of line end the file has ("\\n", "\\r\\n" or "\\r"); None when it mixes kinds, and then
              `text` has them as they are
    encoding: as declared, "utf-8" by default
    bom:      the file begins with the UTF-8 byte order mark
    """

    text: str
    newline: str | None
    encoding: str
    bom: bool

    @staticmethod
    def decode(source: bytes) -> SourceFile:
        """Raises EditError when the bytes are not text in the encoding the file declares."""
        bom = source.startswith(codecs.BOM_UTF8)
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
            encoding = "utf-8" if bom else encoding
            text = source.removeprefix(codecs.BOM_UTF8).decode(encoding)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise EditError(f"The file cannot be read as text in the encoding it declares ({error}).") from None
        ends = set(_LINE_END.findall(text))
        if len(ends) > 1:
            return SourceFile(text, None, encoding, bom)
        newline = ends.pop() if ends else "\n"
        return SourceFile(text.replace(newline, "\n"), newline, encoding, bom)

    def encode(self) -> bytes:
        text = self.text if self.newline is None else self.text.replace("\n", self.newline)
        try:
            encoded = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise EditError(f"The edited text cannot be written in the file's encoding ({error}).") from None
        return codecs.BOM_UTF8 + encoded if self.bom else encoded

    def with_text(self, text: str) -> SourceFile:
        return replace(self, text=text)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Offset of the first character of every line."""
        return (0, *(match.end() for match in _LINE_END.finditer(self.text)))

    def line(self, number: int) -> str:
        """Text of the 0-based line, without its line end."""
        return self.text[self.starts[number] : self.line_end(number)]

    def line_end(self, number: int) -> int:
        """Offset just before the line end of the 0-based line."""
        if number + 1 == len(self.starts):
            return len(self.text)
        end = self.starts[number + 1]
        return end - (2 if self.text[end - 2 : end] == "\r\n" else 1)

    def next_line(self, number: int) -> int:
        """Offset just after the line end of the 0-based line (the end of the text for the last one)."""
        return self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)

    def line_of(self, offset: int) -> int:
        """0-based number of the line that holds the character at `offset`."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low

    def offset(self, position: Position) -> int:
        """Offset in `text` of an LSP position (UTF-16 code units). Raises EditError when the file has no such line."""
        if position.line >= len(self.starts):
            raise EditError("The file has changed since it was analysed; analyse it again.")
        units, line = 0, self.line(position.line)
        for index, character in enumerate(line):
            if units >= position.character:
                return self.starts[position.line] + index
            units += 2 if ord(character) > 0xFFFF else 1
        return self.starts[position.line] + len(line)

    def offset_utf8(self, line: int, column: int) -> int:
        """Offset of an `ast` position: 1-based line, column in UTF-8 bytes."""
        return self.starts[line - 1] + len(self.line(line - 1).encode()[:column].decode(errors="ignore"))

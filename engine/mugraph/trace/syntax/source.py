"""A source text with its syntax tree, and the step from Python's positions to the editor's.

Python counts columns in UTF-8 bytes, editors in UTF-16 code units; every conversion between the two is here.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mugraph.ir.region import Position, Range

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")  # str.splitlines would also split at form feeds, Python does not


def read_source(path: Path) -> str:
    """The text of a Python file, its byte-order mark and declared encoding taken care of, line ends as they are.

    Raises OSError, SyntaxError (an unknown encoding) or UnicodeDecodeError.
    """
    data = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding).removeprefix("\ufeff")


def text_digest(text: str) -> str:
    """64 hexadecimal digits: whether a file still holds what it held."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Source:
    """text: as the editor has it, without a byte-order mark."""

    path: str
    text: str

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines with their ends."""
        return tuple(line for line in _LINE.findall(self.text) if line)

    @cached_property
    def tree(self) -> ast.Module:
        """Raises SyntaxError or ValueError (null bytes)."""
        return ast.parse(self.text, filename=self.path)

    def _character(self, line: int, column: int) -> int:
        """The index in the line (in code points) of a column in UTF-8 bytes; line is 1-based."""
        text = self.lines[line - 1]
        return column if text.isascii() else len(text.encode("utf-8")[:column].decode("utf-8", errors="ignore"))

    def position(self, line: int, column: int) -> Position:
        """line: 1-based; column: UTF-8 bytes, as in ast and code objects."""
        before = self.lines[line - 1][: self._character(line, column)]
        return Position(line - 1, len(before.encode("utf-16-le")) // 2)

    def span(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt | None = None) -> Range:
        """From the first node's start to the last node's end."""
        last = last or first
        end_line, end_column = last.end_lineno or last.lineno, last.end_col_offset or last.col_offset
        return Range(self.position(first.lineno, first.col_offset), self.position(end_line, end_column))

    def beside(self, first: ast.stmt, last: ast.stmt) -> tuple[bool, bool]:
        """Whether other code stands before the first on its line, and behind the last on its line."""
        end_line, end_column = last.end_lineno or last.lineno, last.end_col_offset or last.col_offset
        before = self.lines[first.lineno - 1][: self._character(first.lineno, first.col_offset)].strip()
        after = self.lines[end_line - 1][self._character(end_line, end_column) :].strip()
        return bool(before), bool(after) and not after.startswith("#")

    def covered(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt | None = None) -> str:
        """The text of `span`, exactly."""
        last = last or first
        end_line = last.end_lineno or last.lineno
        start = self._character(first.lineno, first.col_offset)
        end = self._character(end_line, last.end_col_offset or last.col_offset)
        if first.lineno == end_line:
            return self.lines[end_line - 1][start:end]
        between = self.lines[first.lineno : end_line - 1]
        return "".join((self.lines[first.lineno - 1][start:], *between, self.lines[end_line - 1][:end]))

"""Indenting whole statements one level deeper without touching what is inside their strings."""

from __future__ import annotations

import io
import re
import tokenize

from mugraph.edit.source.text import EditError, SourceFile


def string_lines(file: SourceFile) -> frozenset[int]:
    """0-based lines that begin inside a string literal: their leading blanks are data."""
    inside: set[int] = set()
    opened: list[int] = []  # rows of f-strings that are open (Python 3.12 splits them into tokens)
    starts = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
    ends = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
    text = re.sub(r"\r\n|\r", "\n", file.text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0], token.end[0]))
            elif token.type in starts:
                opened.append(token.start[0])
            elif token.type in ends:
                inside.update(range(opened.pop(), token.end[0]))
    except (tokenize.TokenError, IndentationError) as error:
        raise EditError(f"The file is not valid Python ({error}).") from None
    return frozenset(inside)


def indent_lines(file: SourceFile, first: int, last: int, unit: str, in_string: frozenset[int]) -> str:
    """The text of lines `first` to `last` (0-based, with the last one's line end), one `unit` deeper."""
    lines: list[str] = []
    for number in range(first, last + 1):
        line = file.text[file.starts[number] : file.next_line(number)]
        lines.append(line if number in in_string or not line.strip() else unit + line)
    return "".join(lines)


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_unit(file: SourceFile, line: int) -> str:
    """The indentation that this line's block adds to the block around it; four blanks at the top level."""
    own = indentation(file.line(line))
    for number in range(line - 1, -1, -1):
        text = file.line(number)
        if text.strip() and not text.lstrip().startswith("#"):
            outer = indentation(text)
            if len(outer) < len(own) and own.startswith(outer):
                return own[len(outer) :]
    return "\t" if own.startswith("\t") else "    "

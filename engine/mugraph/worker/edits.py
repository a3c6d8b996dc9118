"""The difference of two texts as edits of an editor: whole lines, so that no position falls inside a character."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from mugraph.protocol.values import Position, Range, TextEdit

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def lines_of(text: str) -> list[str]:
    """With their ends; what LSP calls lines (str.splitlines splits at more)."""
    return _LINE.findall(text)


def text_edits(before: str, after: str) -> list[TextEdit]:
    """In order, not overlapping. What did not change is not touched."""
    old, new = lines_of(before), lines_of(after)
    same = common_start(old, new)
    end = common_end(old[same:], new[same:])
    middle, wanted = old[same : len(old) - end], new[same : len(new) - end]
    edits: list[TextEdit] = []
    for what, i1, i2, j1, j2 in SequenceMatcher(None, middle, wanted).get_opcodes():
        if what != "equal":
            place = Range(_line_start(old, same + i1), _line_start(old, same + i2))
            edits.append(TextEdit(place, "".join(wanted[j1:j2])))
    return edits


def common_start(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def common_end(old: list[str], new: list[str]) -> int:
    return common_start(old[::-1], new[::-1])


def _line_start(lines: list[str], number: int) -> Position:
    """The start of a line; for the line after the last, the end of the text."""
    if number < len(lines) or not lines:
        return Position(number, 0)
    last = lines[-1]
    if last.endswith(("\n", "\r")):
        return Position(len(lines), 0)
    return Position(len(lines) - 1, len(last.encode("utf-16-le")) // 2)

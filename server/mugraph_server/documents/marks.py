"""Where a place in a text has moved to by an edit."""

from __future__ import annotations

from lsprotocol.types import Position, Range

from mugraph_server.documents.text import split_lines, utf16_length


def key(position: Position) -> tuple[int, int]:
    return position.line, position.character


def inserted_end(start: Position, text: str) -> Position:
    """Where `text`, put at `start`, ends."""
    lines = split_lines(text)
    last = utf16_length(lines[-1])
    return Position(start.line + len(lines) - 1, last + (start.character if len(lines) == 1 else 0))


def moved(mark: Range, edited: Range, text: str) -> Range | None:
    """The mark after `edited` was replaced by `text`; None if the edit reaches into it.

    An edit that ends where the mark starts pushes it along: new lines above a statement, or its indentation.
    """
    if key(mark.end) <= key(edited.start):
        return mark
    if key(edited.end) <= key(mark.start):
        end = inserted_end(edited.start, text)
        return Range(_shifted(mark.start, edited.end, end), _shifted(mark.end, edited.end, end))
    return None


def stretched(mark: Range, edited: Range, text: str) -> Range:
    """The mark after an edit inside it or across its borders: as much of it as is left, with what was put in."""
    end = inserted_end(edited.start, text)
    start = mark.start if key(mark.start) <= key(edited.start) else edited.start
    last = end if key(mark.end) <= key(edited.end) else _shifted(mark.end, edited.end, end)
    return Range(start, last)


def difference(old: str, new: str) -> tuple[Range, str] | None:
    """The one edit, in whole lines, that makes `new` of `old`; None where they are equal."""
    if old == new:
        return None
    before, after = split_lines(old), split_lines(new)
    limit = min(len(before), len(after))
    head = next((i for i in range(limit) if before[i] != after[i]), limit)
    tail = 0
    while tail < limit - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    span = Range(_line_start(before, head), _line_start(before, len(before) - tail))
    return span, "".join(after[head : len(after) - tail])


def _line_start(lines: list[str], number: int) -> Position:
    if number < len(lines):
        return Position(number, 0)
    return Position(len(lines) - 1, utf16_length(lines[-1]))


def _shifted(position: Position, old: Position, new: Position) -> Position:
    """`position`, not before `old`, after what ended at `old` ends at `new`."""
    if position.line > old.line:
        return Position(position.line + new.line - old.line, position.character)
    return Position(new.line, new.character + position.character - old.character)

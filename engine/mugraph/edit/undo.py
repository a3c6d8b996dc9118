"""Takes one edit out of a file's text, whatever else has changed in the file since."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mugraph.edit.source.record import Record, Replaced, text_hash
from mugraph.edit.source.text import EditError, SourceFile

_LINE_END = re.compile(r"\r\n|\r|\n")


def undo(file: SourceFile, record: Record) -> SourceFile:
    """The file with the record's replacements and import taken back.

    The parts that were replaced must be as the edit left them (line ends apart); everything else may have changed.
    Raises EditError when one was changed by hand.
    """
    exact = record.newline is None  # the file mixed its line ends, and the record has them as they were
    text = file.text if exact else _LINE_END.sub("\n", file.text)
    end_of_line = record.newline if file.newline is None and record.newline else "\n"
    pieces = [(*_span(text, region, record), region.original) for region in record.regions]
    if imported := _import_span(text, record.import_text):
        pieces.append((*imported, ""))
    raw = range(len(text) + 1) if exact or file.newline is not None else _raw_offsets(file.text)
    result: list[str] = []
    done = 0
    for start, end, original in sorted(pieces):
        result += [file.text[done : raw[start]], original if exact else original.replace("\n", end_of_line)]
        done = raw[end]
    undone = "".join([*result, file.text[done:]])
    if left := re.search(rf"\b{record.alias}\b", undone):
        line = len(_LINE_END.findall(undone[: left.start()])) + 1
        raise EditError(f"{record.file} still uses {record.alias} in line {line}; remove that by hand first.")
    return file.with_text(undone)


def _span(text: str, region: Replaced, record: Record) -> tuple[int, int]:
    """[start, end) of a replacement."""
    found = [match.start() for match in re.finditer(re.escape(region.anchor), text)]
    start = found[0] - region.before if found else -1
    end = start + region.length
    if len(found) != 1 or start < 0 or text_hash(text[start:end]) != region.sha256:
        function = region.names(record)[0]
        raise EditError(
            f"The part of {record.file} that calls {record.alias}.{function} was edited by hand, so it was left as it "
            "is; the original is in its else branch."
        )
    return start, end


def _import_span(text: str, import_text: str) -> tuple[int, int] | None:
    """[start, end) of the inserted import; None when the user has removed it."""
    for wanted in (import_text, import_text.strip("\n") + "\n", import_text.strip("\n")):
        at = text.find(wanted)
        if at >= 0:
            return at, at + len(wanted)
    return None


def _raw_offsets(raw: str) -> Sequence[int]:
    """For every offset in the text with "\\n" line ends, the end included, the offset in the text as it is."""
    offsets: list[int] = []
    for offset, character in enumerate(raw):
        if not (character == "\n" and offset and raw[offset - 1] == "\r"):
            offsets.append(offset)
    return [*offsets, len(raw)]

"""What is analysed as one text: a file, an untitled buffer, or all code cells of a notebook, one after the other."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

from lsprotocol.types import Position, Range

from mugraph_server.documents.text import Text
from mugraph_server.relevance import INLINE, Look, look, parses

_stamps = itertools.count(1)
_MAGIC = re.compile(r"^(\s*)[%!?]", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\A\s*%%(?!time\b|timeit\b|capture\b)")

Kind = Literal["file", "untitled", "notebook"]


@dataclass
class Document:
    """One text in the editor. version: the editor's."""

    uri: str
    version: int
    text: Text
    language: str = "python"


@dataclass
class Source:
    """One text that is analysed.

    stamp: a new number for every state of the text. Editors count versions from the start again when a document is
           opened again; by version alone a result for the old text would be taken for one of the new text.
    """

    uri: str
    path: str
    kind: Kind
    documents: list[Document]
    stamp: int = field(default_factory=lambda: next(_stamps))
    _text: str | None = None
    _starts: list[int] = field(default_factory=list[int])
    _look: Look | None = None

    def touch(self) -> None:
        """Its text has changed."""
        self.stamp = next(_stamps)
        self._text = None
        self._look = None

    @property
    def version(self) -> int:
        return self.documents[0].version if self.documents else 0

    @property
    def text(self) -> str:
        if self._text is None:
            if self.kind == "notebook":
                self._assemble()
            else:
                self._text, self._starts = str(self.documents[0].text), [0]
        assert self._text is not None
        return self._text

    @property
    def is_small(self) -> bool:
        return len(self.text) <= INLINE

    def known_look(self) -> Look | None:
        """What is known of the text; None if looking at it here would take too long and no other process has done it
        yet."""
        if self._look is None and self.is_small:
            self._look = look(self.text)
        return self._look

    def keep_look(self, stamp: int, found: Look) -> None:
        if stamp == self.stamp:
            self._look = found

    def locate(self, line: int) -> tuple[Document, int] | None:
        """The document that a line of the text belongs to, and the line's number in it."""
        if not self.documents or not self.text.strip():
            return (self.documents[0], line) if self.documents and self.kind != "notebook" else None
        index = max(0, bisect_right(self._starts, line) - 1)
        return self.documents[index], line - self._starts[index]

    def place(self, span: Range) -> tuple[Document, Range] | None:
        """A range of the text as a range of one document; None if it is not within a single one."""
        start, end = self.locate(span.start.line), self.locate(span.end.line)
        if start is None or end is None or start[0] is not end[0]:
            return None
        return start[0], Range(Position(start[1], span.start.character), Position(end[1], span.end.character))

    def first_line(self, document: Document) -> int:
        """The line of the text at which a document begins."""
        if self.kind != "notebook":
            return 0
        _ = self.text
        index = next((i for i, known in enumerate(self.documents) if known is document), None)
        return self._starts[index] if index is not None else 0

    def shifted(self, document: Document, span: Range) -> Range:
        first = self.first_line(document)
        return Range(
            Position(span.start.line + first, span.start.character), Position(span.end.line + first, span.end.character)
        )

    def _assemble(self) -> None:
        """The cells joined, with a line end after each. Magics become comments of the same length, so columns stay the
        same."""
        parts: list[str] = []
        self._starts = []
        line = 0
        for document in self.documents:
            self._starts.append(line)
            text = str(document.text)
            text = _without_magics(text)
            ended = text.endswith(("\n", "\r"))
            parts.append(text if ended else f"{text}\n")
            line += len(document.text.lines) - ended
        self._text = "".join(parts)


def _without_magics(text: str) -> str:
    """A cell with its magics as comments. A cell that is Python already stays as it is: its lines may begin with
    operators."""
    if _CELL_MAGIC.match(text):
        return re.sub(r"(?m)^.", "#", text)
    if not _MAGIC.search(text) or parses(text):
        return text
    return _MAGIC.sub(r"\1#", text)

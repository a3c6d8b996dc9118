"""Links from code that a kernel replaces to the generated module it stands in."""

from __future__ import annotations

from lsprotocol import types
from pygls.uris import from_fs_path

from mugraph_server.documents.source import Document, Source
from mugraph_server.regions import FileState


def links(source: Source, document: Document, file: FileState) -> list[types.DocumentLink]:
    found: list[types.DocumentLink] = []
    for check, place in file.checks:
        spot = source.place(place) if place is not None else None
        target = from_fs_path(check.module)
        if spot is None or spot[0] is not document or target is None or check.state == "missing":
            continue
        first = spot[1].start
        end = types.Position(first.line, len(document.text.line(first.line)))
        span = types.Range(first, spot[1].end if spot[1].end.line == first.line else end)
        found.append(types.DocumentLink(span, target, "the generated kernel"))
    return found

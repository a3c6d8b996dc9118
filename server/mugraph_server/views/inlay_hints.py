"""The speedup at the end of the region it belongs to."""

from __future__ import annotations

from lsprotocol import types

from mugraph_server.documents.marks import key
from mugraph_server.documents.source import Document, Source
from mugraph_server.regions import FileState
from mugraph_server.views.ways import same_code
from mugraph_server.views.words import gain_of, gains_of, headline


def inlay_hints(source: Source, document: Document, file: FileState, span: types.Range) -> list[types.InlayHint]:
    """Only of verified results that hold for the text as it is."""
    found: list[types.InlayHint] = []
    for mark in file.marks:
        gains = [one.region for one in same_code(file, mark) if file.state(one) == "improved" and gain_of(one.region)]
        if not gains or gains[0] is not mark.region:
            continue
        spot = source.place(mark.range)
        if spot is None or spot[0] is not document or not key(span.start) <= key(spot[1].end) <= key(span.end):
            continue
        label, tooltip = f"{gains_of(gains)} with mugraph", "\n".join(map(headline, gains))
        hint = types.InlayHint(spot[1].end, label, tooltip=tooltip, padding_left=True)
        found.append(hint)
    return found

"""A line above each function that has a region: how much faster, and a click to have it.

The slot stays filled from the moment the file opens, or every line of it would jump at each save.
"""

from __future__ import annotations

from lsprotocol import types

from mugraph_server.documents.source import Document, Source
from mugraph_server.regions import FileState
from mugraph_server.views.code_actions import AGAIN, APPLY, REVERT, SHAPES
from mugraph_server.views.ways import offered
from mugraph_server.views.words import lens


def lenses(source: Source, document: Document, file: FileState) -> list[types.CodeLens]:
    found: list[types.CodeLens] = []
    for mark in file.marks:
        spot = source.place(mark.head)
        if spot is None or spot[0] is not document:
            continue
        state = file.state(mark)
        title = lens(file, mark)
        command, arguments, tooltip = "", None, None
        if state == "improved" and mark.region.applicable:
            command, arguments = APPLY, [source.uri, [one.key for one in offered(file, mark)]]
        elif (state in ("stale", "failed", "no-gain") and not file.broken) or (
            state == "queued" and not file.searching
        ):
            command, arguments = AGAIN, [source.uri, mark.key]
        elif state == "needs-shapes":
            command, arguments = SHAPES, [source.uri, mark.region.function]
        elif state == "applied":
            command, arguments, tooltip = REVERT, [source.uri], file.runs(mark) or None
        found.append(types.CodeLens(spot[1], types.Command(title, command, tooltip, arguments)))
    if not file.marks and file.looking:
        for head in file.heads:
            line = types.Position(head, 0)
            spot = source.place(types.Range(line, line))
            if spot is not None and spot[0] is document:
                found.append(types.CodeLens(spot[1], types.Command("searching…", "")))
    return found

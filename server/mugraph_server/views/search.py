"""`mugraph/search`: a region's candidates with their times, and where in the text its μGraph comes from."""

from __future__ import annotations

from typing import Any

import msgspec
from lsprotocol import types

from mugraph_server.documents.source import Document, Source
from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState
from mugraph_server.views.words import sentence, share


def chosen(source: Source, document: Document, file: FileState, key: str | None, line: int) -> Mark | None:
    """The region of this key; without one that at this line of the document, else the last one before it, else the
    first of the document."""
    if key is not None:
        return file.find(key)
    found = [(spot[1], mark) for mark in file.marks if (spot := source.place(mark.range)) and spot[0] is document]
    at = [mark for place, mark in found if place.start.line <= line <= place.end.line]
    before = [mark for place, mark in found if place.start.line <= line]
    return next(iter([*at, *before[-1:], *(mark for _, mark in found)]), None)


def search(source: Source, document: Document, file: FileState, mark: Mark) -> dict[str, Any]:
    """
    key, function, range: of the region, where it stands now; None for a range in another cell of the notebook
    message:    one sentence about it
    state:      as the diagnostic's code has it
    candidates: in the order they were met, those of one kernel together; every estimate_us is an estimate, measured_us
                is None where nothing was timed
    share:      of a recorded run, in words; "" where nothing was recorded
    timing:     of the region; its `source` says whether it is measured or estimated
    search:     how the search went; None while it runs
    places:     of the statements that boxes of the drawing name, in this document; empty where the code was edited
    """
    result = None if mark.is_open else mark.result
    spot = source.place(mark.range)
    return {
        "key": mark.key,
        "function": mark.region.function,
        "range": spot[1] if spot is not None and spot[0] is document else None,
        "message": sentence(file, mark),
        "state": file.state(mark),
        "share": share(mark.region),
        "topologies": result.search.topologies if result is not None and result.search else mark.pace.topologies,
        "seconds": result.search.total_s if result is not None and result.search else mark.pace.seconds,
        "candidates": msgspec.to_builtins(mark.candidates),
        "timing": msgspec.to_builtins(result.timing) if result is not None else None,
        "search": msgspec.to_builtins(result.search) if result is not None else None,
        "places": places(source, document, mark),
    }


def places(source: Source, document: Document, mark: Mark) -> list[types.Range | None]:
    """None for a statement in another cell of the notebook."""
    if mark.touched or len(mark.statements) != len(mark.region.statements):
        return []
    spots = [source.place(statement) for statement in mark.statements]
    return [spot[1] if spot is not None and spot[0] is document else None for spot in spots]


def digest(file: FileState) -> tuple[tuple[object, ...], ...]:
    """Differs whenever answers could differ in more than elapsed time."""
    return tuple((mark.key, file.state(mark), mark.candidates) for mark in file.marks)

"""One diagnostic for each region, a hint: anything more severe draws a squiggle under code that is not wrong.

Pushed, or pulled with result ids by clients that can; never both, or every line would stand twice.
"""

from __future__ import annotations

from lsprotocol import types
from mugraph.protocol.values import KernelCheck
from pygls.uris import from_fs_path

from mugraph_server.documents.source import Document, Source
from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState
from mugraph_server.views.words import kept, sentence

SOURCE = "mugraph"
_SHOWN = frozenset({"improved", "needs-shapes", "failed", "applied"})
_KEPT = frozenset({"queued", "searching", "stale"})
"""Shown where there is an earlier result to keep; else there is nothing to say yet."""
_MOST_STATEMENTS = 40


def diagnostics(source: Source, document: Document, file: FileState, related: bool) -> list[types.Diagnostic]:
    """Nothing about a text that does not parse: no sentence of ours is known to be true of it."""
    if file.broken:
        return []
    found: list[types.Diagnostic] = []
    for mark in file.marks:
        diagnostic = _region(source, document, file, mark, related)
        if diagnostic is not None:
            found.append(diagnostic)
    found += [made for check, place in file.checks if (made := _check(source, document, check, place)) is not None]
    if file.errors and document is source.documents[0]:
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        found += [
            types.Diagnostic(start, f"mugraph: {error}", types.DiagnosticSeverity.Hint, "file", source=SOURCE)
            for error in file.errors
        ]
    return found


def result_id(source: Source, file: FileState | None) -> str:
    """The same while nothing that is shown could differ."""
    return f"{source.stamp}.{file.revision if file is not None else 0}"


def _region(source: Source, document: Document, file: FileState, mark: Mark, related: bool) -> types.Diagnostic | None:
    state = file.state(mark)
    if state not in _SHOWN and not (state in _KEPT and mark.result is not None):
        return None
    spot = source.place(mark.head if state in ("needs-shapes", "failed") else mark.range)
    if spot is None or spot[0] is not document:
        return None
    information: list[types.DiagnosticRelatedInformation] = []
    if related and state == "improved":
        for number, statement in enumerate(mark.statements[:_MOST_STATEMENTS]):
            place = source.place(statement)
            if place is not None:
                at = types.Location(place[0].uri, place[1])
                words = f"part {number + 1} of what the kernel computes"
                information.append(types.DiagnosticRelatedInformation(at, words))
    return types.Diagnostic(
        spot[1],
        sentence(file, mark) if state not in ("queued", "searching") else kept(mark),
        types.DiagnosticSeverity.Hint,
        state,
        source=SOURCE,
        related_information=information or None,
        data={"uri": source.uri, "key": mark.key, "id": mark.region.id},
    )


def _check(
    source: Source, document: Document, check: KernelCheck, place: types.Range | None
) -> types.Diagnostic | None:
    """A generated kernel that no longer fits its source computes something else: that is worth a warning."""
    if place is None or check.state not in ("stale", "missing"):
        return None
    spot = source.place(place)
    if spot is None or spot[0] is not document:
        return None
    module = from_fs_path(check.module)
    return types.Diagnostic(
        spot[1],
        check.message,
        types.DiagnosticSeverity.Warning,
        f"kernel-{check.state}",
        types.CodeDescription(module) if module and check.state == "stale" else None,
        source=SOURCE,
        data={"uri": source.uri, "kernel": check.id},
    )

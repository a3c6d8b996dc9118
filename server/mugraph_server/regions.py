"""The one store of region states. Every view is computed from it.

What the engine says of a region applies to the text it was asked about. The store moves the places along with the edits
since then. A region whose code may have changed is "stale"; it keeps its earlier result until there is a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types
from mugraph.protocol.values import KernelCheck, Recording, Region, RegionStatus

from mugraph_server.documents.documents import Edit
from mugraph_server.documents.marks import moved, stretched
from mugraph_server.region_marks import Mark, Pace, ended, placed, to_range


@dataclass
class FileState:
    """What is known of one source.

    stamp:    of the text that the regions were found in
    checks:   of the generated kernels it uses, and where they are now
    shapes_from: paths of files whose runs say how its functions are called
    recordings: arguments that its functions were seen to be called with
    unjudged: the text was edited, and has not been looked at since
    stale:    the text now means something else than that one
    broken:   why the text does not parse now; "" if it does
    looking:  asked for, and no answer yet; `heads` are lines that will probably have regions
    revision: counts what a view could show differently
    """

    uri: str
    stamp: int = 0
    fingerprint: str = ""
    marks: tuple[Mark, ...] = ()
    errors: tuple[str, ...] = ()
    checks: tuple[tuple[KernelCheck, types.Range | None], ...] = ()
    shapes_from: tuple[str, ...] = ()
    recordings: tuple[Recording, ...] = ()
    unjudged: bool = False
    stale: bool = False
    broken: str = ""
    looking: bool = False
    searching: bool = False
    tracing: str = ""
    heads: tuple[int, ...] = ()
    revision: int = 0

    def depends_on(self, path: str) -> bool:
        """Whether what another file says may change what is found here: it says shapes, or may do so now."""
        lacks = any(mark.region.status == "needs-shapes" for mark in self.marks)
        return lacks or path in self.shapes_from

    def state(self, mark: Mark) -> RegionStatus:
        """The status to show. Code that does not parse, or was edited, is never called verified."""
        if self.broken or self.stale or self.unjudged or mark.touched:
            return "stale"
        return mark.region.status

    def runs(self, mark: Mark) -> str:
        """What the last checked run made of the kernel that stands in the region's place."""
        for check, place in self.checks:
            if check.state == "fits" and place is not None and place.start <= mark.range.start < place.end:
                return check.runs
        return ""

    def find(self, key: str) -> Mark | None:
        return next((mark for mark in self.marks if mark.key == key), None)


class Regions:
    """The states by source. changed: called with the uri of a source whose views may have changed; `lasting` is False
    for the progress of a search, which needs a new progress bar but no new lenses."""

    def __init__(self, changed: Callable[[str, bool], None]) -> None:
        self._changed = changed
        self._files: dict[str, FileState] = {}

    def get(self, uri: str) -> FileState | None:
        return self._files.get(uri)

    def all(self) -> list[FileState]:
        return list(self._files.values())

    def file(self, uri: str) -> FileState:
        return self._files.setdefault(uri, FileState(uri))

    def drop(self, uri: str) -> None:
        if self._files.pop(uri, None) is not None:
            self._changed(uri, True)

    def clear(self) -> list[str]:
        uris = list(self._files)
        for uri in uris:
            self.drop(uri)
        return uris

    def touch(self, file: FileState, lasting: bool = True) -> None:
        file.revision += lasting
        self._changed(file.uri, lasting)

    # --- what the editor does -----------------------------------------------------------------------------------

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        file = self._files.get(uri)
        if file is None:
            return
        for span, text in edits:
            file.marks = tuple(mark.edited(span, text) for mark in file.marks)
            file.checks = tuple((check, _moved(place, span, text)) for check, place in file.checks)
            file.heads = tuple(line for head in file.heads if (line := _moved_line(head, span, text)) is not None)
        file.unjudged = True
        file.revision += 1  # nobody is told: the editor that made the edit asks for its views again

    def judged(self, uri: str, fingerprint: str, broken: str, late: bool = False) -> None:
        """The text has been looked at: does it parse, and does it mean what the regions were found in?

        late: views may have been asked for since the edit, and have said that nothing is known of it
        """
        file = self.file(uri)
        stale = bool(file.fingerprint) and fingerprint != file.fingerprint
        was_unjudged, file.unjudged = file.unjudged, False
        changed = (stale, broken) != (file.stale, file.broken)
        file.stale, file.broken = stale, broken
        if changed or was_unjudged:
            self.touch(file, lasting=changed or late)

    # --- what the engine says -----------------------------------------------------------------------------------

    def asked(self, uri: str, heads: tuple[int, ...], search: bool) -> None:
        """search: False if the question only traces."""
        file = self.file(uri)
        file.looking = not file.marks
        file.heads = heads
        file.searching = search
        self.touch(file)

    def found(
        self,
        uri: str,
        stamp: int,
        fingerprint: str,
        regions: Sequence[Region],
        errors: Sequence[str],
        since: Sequence[Edit],
        shapes_from: Sequence[str] = (),
    ) -> None:
        file = self.file(uri)
        before = {mark.key: mark for mark in file.marks}
        kept = {region.key for region in regions}
        by_function = {mark.region.function: mark for mark in file.marks if mark.key not in kept}
        marks: list[Mark] = []
        for region in regions:
            old = before.get(region.key) or by_function.get(region.function)
            marks.append(placed(region, since, old.result if old is not None else None, Pace()))
        file.stamp, file.fingerprint = stamp, fingerprint
        file.marks, file.errors, file.shapes_from = tuple(marks), tuple(errors), tuple(shapes_from)
        file.unjudged, file.stale, file.broken, file.looking, file.tracing = False, False, "", False, ""
        self.touch(file)

    def region(self, uri: str, region: Region, since: Sequence[Edit]) -> None:
        self._mark(uri, region.key, lambda mark: placed(region, since, mark.result, mark.pace), lasting=True)

    def pace(self, uri: str, key: str | None, pace: Callable[[Pace], Pace], lasting: bool = False) -> None:
        if key is None:
            file = self.file(uri)
            file.tracing = pace(Pace()).what
            self.touch(file, lasting=False)
        else:
            self._mark(uri, key, lambda mark: replace(mark, pace=pace(mark.pace)), lasting)

    def finished(self, uri: str, message: str, unfinished: RegionStatus | None) -> None:
        """unfinished: the status of regions that were not searched to the end; None leaves them as they are."""
        file = self.file(uri)
        file.searching = file.looking = False
        file.tracing = ""
        if message:
            file.errors = (message,)
        if unfinished is not None:
            file.marks = tuple(ended(mark, unfinished, message) if mark.is_open else mark for mark in file.marks)
        self.touch(file)

    def checked(self, uri: str, checks: Sequence[KernelCheck]) -> None:
        file = self.file(uri)
        kept = tuple((check, to_range(check.range) if check.range else None) for check in checks)
        if kept != file.checks:
            file.checks = kept
            self.touch(file)

    def recorded(self, uri: str, recordings: Sequence[Recording]) -> None:
        file = self._files.get(uri)
        if file is not None and tuple(recordings) != file.recordings:
            file.recordings = tuple(recordings)
            self.touch(file, lasting=False)

    def _mark(self, uri: str, key: str, change: Callable[[Mark], Mark], lasting: bool) -> None:
        file = self._files.get(uri)
        if file is None or file.find(key) is None:
            return
        file.marks = tuple(change(mark) if mark.key == key else mark for mark in file.marks)
        self.touch(file, lasting)


def _moved(place: types.Range | None, span: types.Range, text: str) -> types.Range | None:
    return None if place is None else moved(place, span, text) or stretched(place, span, text)


def _moved_line(line: int, span: types.Range, text: str) -> int | None:
    start = types.Position(line, 0)
    after = moved(types.Range(start, start), span, text)
    return after.start.line if after is not None else None

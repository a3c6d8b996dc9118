"""What a progress bar says of a file's search."""

from __future__ import annotations

from mugraph_server.regions import FileState


def progress(file: FileState) -> tuple[str, int | None]:
    """A few words and a percentage; none while it cannot be said how much there is to do."""
    if not file.marks:
        return file.tracing or "waiting", None
    current = next((mark for mark in file.marks if mark.region.status == "searching"), None)
    if current is None:
        return file.tracing or "waiting", None
    pace = current.pace
    words = pace.what or f"searching {current.region.function}"
    if pace.topologies:
        words += f", {pace.topologies} topologies in {pace.seconds:.0f} s"
    if pace.of < 2:
        return words, None
    return f"{pace.number + 1}/{pace.of}: {words}", 100 * pace.number // pace.of

"""The edit that puts the kernels found for a document into its text as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mugraph.edit.apply import Prepared, prepare
from mugraph.events import RegionResult
from mugraph.ir.region import Position, Range
from mugraph.pipeline import improved
from mugraph.protocol.values import Document
from mugraph.tune.device import resolve
from mugraph.worker.documents import Known, moved
from mugraph.worker.edits import common_end, common_start, lines_of
from mugraph.worker.texts import as_bytes, read


class NoKernels(Exception):
    """One sentence for the user: there is no kernel for the code as it is now."""


def prepared(document: Document, known: Known | None, keys: Sequence[str] | None) -> tuple[str, Prepared]:
    """The document's text, and both files of the edit, as `mugraph optimize --apply` would write them.

    keys: of the regions; None means all that are improved. Raises NoKernels, EditError, Rejected, Unreadable, OSError.
    """
    if known is None:
        raise NoKernels("nothing has been searched in this document yet")
    before = read(document)
    results = _placed(_chosen(known, keys), known.text.text, before)
    plans, sources, speeds = improved(results)
    target = resolve(known.settings.target, known.device)
    path = Path(document.path).resolve()
    return before, prepare(as_bytes(before), path, plans, sources, target=target, speeds=speeds)


def _chosen(known: Known, keys: Sequence[str] | None) -> list[RegionResult]:
    """Improved regions, in the document's order."""
    chosen: list[RegionResult] = []
    for key in known.keys:
        result = known.results.get(key)
        if result is not None and result.status == "improved" and (keys is None or key in keys):
            chosen.append(result)
    missing = set(keys or ()) - {key for key in known.keys if known.results.get(key) in chosen}
    if missing or not chosen:
        raise NoKernels("there is no verified kernel for this code; search again")
    return chosen


def _placed(results: Sequence[RegionResult], old: str, new: str) -> list[RegionResult]:
    """The results where their code stands in the new text. Raises NoKernels where it may have changed."""
    if old == new:
        return list(results)
    was, now = lines_of(old), lines_of(new)
    start = common_start(was, now)
    end = min(common_end(was, now), len(was) - start, len(now) - start)
    placed: list[RegionResult] = []
    for result in results:
        place = result.region.range
        if place.end.line < start:
            placed.append(result)
        elif place.start.line >= len(was) - end:
            shift = len(now) - len(was)
            there = Range(
                Position(place.start.line + shift, place.start.character),
                Position(place.end.line + shift, place.end.character),
            )
            placed.append(moved(result, replace(result.region, range=there)))
        else:
            raise NoKernels(f"the code of {result.region.function} has changed since it was searched; search again")
    return placed

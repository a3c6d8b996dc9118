"""`mugraph optimize PATH[:QUALNAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from rich.console import Console

from mugraph.commands.common import FAILED, OK, Where, WrongUsage, print_json, say_error
from mugraph.commands.progress import ProgressView
from mugraph.edit.apply import EditError, apply_files
from mugraph.events import Done, FileResult
from mugraph.executors.executor import CannotExecute
from mugraph.ir.kernel import Rejected
from mugraph.ir.shares import Share
from mugraph.pipeline import Options, improved, run
from mugraph.recording.memory import complaint, pictured, recorded_shapes, shares
from mugraph.reports.document import file_document
from mugraph.reports.text import print_report
from mugraph.store import Store
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.source import read_source
from mugraph.tune.device import UnknownTarget


def optimize(place: Where, options: Options, *, as_json: bool, apply: bool, verbose: bool, use_store: bool) -> int:
    """Exit status. Raises WrongUsage."""
    result = _run(place, options, verbose, use_store)
    for error in result.errors:
        if place.qualname and not result.regions and f"named {place.qualname}" in error:
            raise WrongUsage(error)
        say_error(error)
    if as_json:
        print_json(file_document(result))
    else:
        print_report(result, Console(), verbose=verbose)
    failed = bool(result.errors) or any(region.status == "failed" for region in result.regions)
    if apply:
        failed |= not _apply(place, result, as_json)
    return FAILED if failed else OK


def _run(place: Where, options: Options, verbose: bool, use_store: bool) -> FileResult:
    store = Store.open() if use_store else None
    try:
        with ProgressView(Console(stderr=True), verbose) as view:
            for event in run(place.path, place.qualname, options, store=store, **_recorded(place)):
                view.show(event)
                if isinstance(event, Done):
                    return event.result
    except (UnknownTarget, CannotExecute) as error:
        raise WrongUsage(str(error)) from None
    finally:
        if store is not None:
            store.close()
            for notice in store.notices:
                say_error(notice)
    raise AssertionError("the pipeline ended without a result")


class _Seen(TypedDict, total=False):
    recorded_shapes: RecordedShapes
    pictures: Mapping[str, Picture]
    shares: Mapping[str, Share]


def _recorded(place: Where) -> _Seen:
    """What `mugraph record` has seen of the file."""
    try:
        path, text = place.path, read_source(place.path)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return {}  # tracing says what is wrong with the file
    problem = complaint(path)
    if problem is not None:
        say_error(problem)
        return {}
    return {
        "recorded_shapes": recorded_shapes(path, text),
        "pictures": pictured(path, text),
        "shares": shares(path, text),
    }


def _apply(place: Where, result: FileResult, quiet: bool) -> bool:
    plans, sources, speeds = improved(result.regions)
    if not plans:
        if not quiet:
            print(f"{place.path}: nothing to write")
        return True
    try:
        written = apply_files(place.path, plans, sources, target=result.device.target, speeds=speeds)
    except (EditError, Rejected) as error:
        say_error(str(error))
        return False
    if not quiet:
        print(f"wrote {written.module} and edited {place.path}; undo with: mugraph revert {place.path}")
    return True

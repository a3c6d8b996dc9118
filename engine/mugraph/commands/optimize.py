"""`mugraph optimize PATH[:QUALNAME]`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mugraph.commands.common import FAILED, OK, Where, WrongUsage, print_json, say_error
from mugraph.commands.setting_options import tuner_named
from mugraph.edit.apply import EditError, apply_files
from mugraph.events import Done, FileResult, Traced
from mugraph.executors.executor import CannotExecute
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Trace
from mugraph.pipeline import Options, improved, run
from mugraph.recording.memory import complaint
from mugraph.recording.runs import Runs
from mugraph.reports.document import file_document
from mugraph.reports.progress import ProgressView
from mugraph.reports.text import print_report
from mugraph.store import Store
from mugraph.trace.report import in_other_files
from mugraph.trace.syntax.callers import Callers
from mugraph.trace.syntax.source import read_source
from mugraph.tune.device import UnknownTarget

_log = logging.getLogger("mugraph.commands")


def optimize(
    place: Where,
    options: Options,
    *,
    as_json: bool,
    apply: bool,
    verbose: bool,
    use_store: bool,
    callers: Sequence[Path] = (),
) -> int:
    """callers: files whose runs say how this one is called; none: those that are found.

    Exit status: with `apply`, 0 where all that was offered is written, whatever became of other regions; else 1 when a
    region failed. Raises WrongUsage."""
    called = Callers(tuple(callers), each=True) if callers else None
    result = _run(place, options, verbose, use_store, called)
    for error in result.errors:
        if place.qualname and not result.regions and f"named {place.qualname}" in error:
            raise WrongUsage(error)
        say_error(error)
    if as_json:
        print_json(file_document(result))
    else:
        print_report(result, Console(), verbose=verbose, offer=not apply)
    if apply and (written := _apply(place, result, as_json)) is not None:
        return OK if written else FAILED
    failed = bool(result.errors) or any(region.status == "failed" for region in result.regions)
    return FAILED if failed else OK


def _run(place: Where, options: Options, verbose: bool, use_store: bool, callers: Callers | None) -> FileResult:
    tuner_named(options.tuner)
    store = Store.open() if use_store else None
    notices: list[str] = []
    try:
        with ProgressView(Console(stderr=True), verbose) as view:
            events = run(place.path, place.qualname, options, store=store, runs=from_runs(place), callers=callers)
            for event in events:
                view.show(event)
                if isinstance(event, Traced):
                    notices += [*event.trace.notices, *in_other_files(event.trace), *_shapes_from(event.trace)]
                if isinstance(event, Done):
                    return event.result
    except (UnknownTarget, CannotExecute) as error:
        raise WrongUsage(str(error)) from None
    finally:
        if store is not None:
            store.close()
            notices += store.notices
        for notice in notices:
            say_error(notice)
    raise AssertionError("the pipeline ended without a result")


def _shapes_from(trace: Trace) -> list[str]:
    if not trace.shapes_from:
        return []
    names = ", ".join(Path(one).name for one in trace.shapes_from)
    return [f"{Path(trace.path).name} is searched for the shapes with which {names} calls it"]


def from_runs(place: Where) -> Runs:
    """What `mugraph record` has seen of the file."""
    try:
        path, text = place.path, read_source(place.path)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:  # tracing says what is wrong with the file
        _log.debug("%s cannot be read: %s", place.path, error)
        return Runs()
    problem = complaint(path)
    if problem is not None:
        say_error(problem)
        return Runs()
    return Runs.of(path, text)


def _apply(place: Where, result: FileResult, quiet: bool) -> bool | None:
    """Whether everything that was offered is written; None where nothing was."""
    plans, sources, speeds = improved(result.regions)
    if not plans:
        if not quiet:
            print(f"{place.path}: nothing to write")
        return None
    try:
        written = apply_files(place.path, plans, sources, target=result.device.target, speeds=speeds)
    except (EditError, Rejected) as error:
        say_error(str(error))
        return False
    if not quiet:
        print(f"wrote {written.module} and edited {place.path}; undo with: mugraph revert {place.path}")
    return True

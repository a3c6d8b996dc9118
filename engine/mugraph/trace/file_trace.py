"""A file's trace, inside the process that may run the user's code: its own functions that have shapes are run, and for
those that have none, files that call them."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from sys import meta_path

from mugraph.ir.ranges import Take, takes
from mugraph.ir.region import Region, Trace
from mugraph.trace.decisions import decisions
from mugraph.trace.pytorch.callables import Judge
from mugraph.trace.regions.by_numbers import without_sizes_of_data
from mugraph.trace.regions.check import check_found
from mugraph.trace.regions.dynamic import with_ranges
from mugraph.trace.regions.partition import Partition
from mugraph.trace.regions.ways import overlap
from mugraph.trace.report import needs_shapes, notices, selected
from mugraph.trace.request import Request
from mugraph.trace.run.entries import Definitions, Entry, find_definitions
from mugraph.trace.run.libraries import Libraries
from mugraph.trace.run.loader import Workspace, WorkspaceFinder
from mugraph.trace.run.recorder import Recorder
from mugraph.trace.session import Session
from mugraph.trace.syntax.package import package_of
from mugraph.trace.syntax.source import Source, read_source, text_digest

_PATIENCE_S = 20.0
"""After which no further file is run to see how it calls this one."""


def trace_request(request: Request) -> Trace:
    path = Path(request.path)
    source = Source(request.path, request.source if request.source is not None else read_source(path))
    definitions = find_definitions(source, request.recorded, pictures=request.pictures)
    recorder = Recorder(Judge())
    workspace = Workspace(_root(request), recorder, source)
    meta_path.insert(0, WorkspaceFinder(workspace))
    recorder.before = Libraries(workspace).prepare
    session = Session(request, source, recorder, workspace)
    wanted = [entry for entry in definitions.entries if selected(entry.function, request.qualname)]
    entries = wanted or definitions.entries
    regions: list[Region] = []
    if entries or not request.callers:
        if not session.load():
            return Trace(request.path, errors=tuple(session.errors))
        regions = _traced(session, entries)
    shapes_from: list[str] = []
    for caller, more in _of_callers(session, definitions, regions):
        shapes_from.append(caller)
        regions += more
    regions.extend(needs_shapes(lack) for lack in definitions.missing if lack.function not in session.ran)
    if not wanted:  # it is part of something that has shapes, or has none
        regions = [region for region in regions if selected(region.function, request.qualname)]
    else:  # whatever the entry asked for ran, but nothing else
        regions = [r for r in regions if r.status != "needs-shapes" or selected(r.function, request.qualname)]
    files = [file.source for file in workspace.files if file.source is not source]
    return Trace(
        request.path,
        tuple(sorted(regions, key=lambda region: region.range.start)),
        tuple(session.errors),
        session.operators,
        dict(session.barriers.most_common()),
        {file.path: text_digest(file.text) for file in files},
        (*notices(definitions, regions, request.qualname), *dict.fromkeys(session.without_region)),
        shapes_from=tuple(shapes_from),
        elsewhere={file: tuple(names) for file, names in session.elsewhere.items()},
    )


def _root(request: Request) -> Path:
    """The folder that the user's code lies in."""
    path, cwd = Path(request.path), Path.cwd()
    if path.resolve().is_relative_to(cwd):
        return cwd
    tops = [package_of(one)[0].resolve() for one in (path, *map(Path, request.callers))]
    return Path(os.path.commonpath(tops))


def _traced(session: Session, entries: Sequence[Entry]) -> list[Region]:
    """The regions in what the entries run, and those that failed."""
    partition = Partition(session.without_loops)
    for entry in entries:
        session.trace(entry, partition)
    regions = [*partition.regions(), *session.failed]
    doubted = [entry for entry in entries if entry.function in session.with_numbers]
    if doubted:
        again = _session_beside(session)
        again.seed = session.seed + 1
        regions = without_sizes_of_data(regions, _regions(again, doubted))
    entries = [_with_sizes_of_data(session, entry) for entry in entries]
    ranges = {entry.function: entry.sizes for entry in entries if entry.sizes}
    if ranges:
        chosen = {entry.function: entry for entry in entries}
        taken = takes([one for sizes in ranges.values() if len(sizes) > 1 for one in sizes])
        samples = [_at(session, chosen.keys(), take) for take in taken]
        decided, called = decisions(partial(_definitions, session), session.places, chosen, session.sizes_of_data)
        found = with_ranges(regions, samples, taken, ranges, decided, called)
        uneven = {one.function for one in found if one.status == "unsupported"}
        if uneven := uneven & {function for function, _ in partition.gathered}:
            session.without_loops |= uneven  # as many iterations as a size says: the body is a region at each size
            largest = _regions(_session_beside(session), entries)
            samples = [_at(session, chosen.keys(), take) for take in taken]
            found = with_ranges(largest, samples, taken, ranges, decided, called)
        regions = found
    if session.request.check:
        session.errors.extend(check_found(partition))
    return regions


def _with_sizes_of_data(session: Session, entry: Entry) -> Entry:
    """The entry, with sizes that come of data beside those that its comment gives a range."""
    found = session.sizes_of_data.get(entry.function)
    entry = replace(entry, on_gpu=entry.function not in session.on_cpu)
    return replace(entry, sizes=(*entry.sizes, *found.ranges)) if found is not None else entry


def _definitions(session: Session, pick: Take) -> Definitions:
    return find_definitions(session.source, session.request.recorded, pick, session.request.pictures)


def _at(session: Session, functions: Collection[str], pick: Take) -> list[Region]:
    """The regions at one size of every declared range."""
    other = _session_beside(session)
    other.pick = pick
    return _regions(other, [entry for entry in _definitions(session, pick).entries if entry.function in functions])


def _session_beside(session: Session) -> Session:
    """That runs the same functions once more."""
    other = Session(session.request, session.source, session.recorder, session.workspace, session.namespace)
    other.sizes_of_data, other.on_cpu = session.sizes_of_data, session.on_cpu
    other.without_loops = session.without_loops
    return other


def _regions(session: Session, entries: Sequence[Entry]) -> list[Region]:
    partition = Partition(session.without_loops)
    for entry in entries:
        session.trace(entry, partition)
    return [*partition.regions(), *session.failed]


def _of_callers(
    session: Session, definitions: Definitions, own: Sequence[Region]
) -> Iterator[tuple[str, Sequence[Region]]]:
    """Files whose runs come to this one, each with the regions that it adds: the first that calls a function says how.
    While functions of this file are left that nothing has called; all files, where the request names them."""
    request, known, began = session.request, [*own], time.monotonic()
    forwards = {name for name in definitions.names if name.endswith(".forward")}  # a base may be another file's
    functions = {*forwards, *(one.function for one in definitions.missing)}
    functions = {name for name in functions if selected(name, request.qualname)}
    for caller in request.callers:
        some = any(selected(region.function, request.qualname) for region in known)
        lacking = not functions <= session.ran or not (some or functions)
        if not request.all_callers and (not lacking or time.monotonic() - began > _PATIENCE_S):
            return
        source = Source(caller, read_source(Path(caller)))
        entries = find_definitions(source).entries
        called = Session(Request(caller, check=request.check), source, session.recorder, session.workspace)
        if not entries or not called.load():
            session.without_region += _without(request, called)
            continue
        found = _traced(called, entries)
        session.without_region += _without(request, called)
        if not called.ran:
            if request.all_callers and not (called.errors or called.failed):
                session.without_region.append(
                    f"the run of {Path(caller).name} calls nothing of {Path(request.path).name}"
                )
            continue
        here = [region for region in found if not any(region is one for one in called.failed)]
        more = [region for region in here if not any(overlap(region.range, one.range) for one in known)]
        known += more
        session.ran |= called.ran
        session.operators += called.operators
        session.barriers += called.barriers
        yield caller, more


def _without(request: Request, called: Session) -> Iterator[str]:
    """Why a file's run says nothing, or not all, of how this one is called; and what of this file is no region."""
    name = Path(called.source.path).name
    for why in (*called.errors, *(f"{one.function}: {one.reason}" for one in called.failed)):
        yield f"{name} does not say how {Path(request.path).name} is called: {why}"
    yield from called.without_region

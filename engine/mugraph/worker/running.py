"""What the runner does: trace and search, in a process of its own (`runner`), started and ended by the engine's front.

It does one job at a time and stays warm between jobs, with the processes of a search (`kept_tools`). Asked to stop, it
kills what the job has started, gives up what it has asked those processes, and ends the job at its next event; where
that takes too long, the front kills it. When the front goes, it ends itself and all it has started.
"""

from __future__ import annotations

import ast
import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from mugraph.edit.check import edited_spans
from mugraph.edit.names import ALIAS
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.events import Event
from mugraph.freed_memory import give_back, keep_freed_memory
from mugraph.ir.region import Range, Trace
from mugraph.log import note
from mugraph.memory.traced_ways import with_other_ways
from mugraph.memory.traces import traced
from mugraph.pipeline import run_trace
from mugraph.recording.runs import Runs
from mugraph.solve.programs import Programs
from mugraph.store import Store
from mugraph.store.place import cache_folder
from mugraph.store.results import FILE
from mugraph.trace.forked import process_id
from mugraph.trace.pytorch import owned
from mugraph.trace.syntax.definitions import definitions, name_range
from mugraph.trace.syntax.source import Source
from mugraph.trace.tracer import begin, callers_for
from mugraph.tune.device import UnknownTarget, detect, resolve
from mugraph.worker.frames import (
    Ended,
    Happened,
    Order,
    RunnerReady,
    SearchTrace,
    Stop,
    TracedFile,
    TraceFile,
    Tracing,
    Unchanged,
    Word,
    read,
    write,
)
from mugraph.worker.kept_tools import IDLE_S, KeptTools
from mugraph.worker.processes import Killed, kill_children, reap
from mugraph.worker.texts import Unreadable, state_of
from mugraph.worker.texts import read as read_document

_log = logging.getLogger("mugraph.worker")


def _programs(order: SearchTrace) -> Programs:
    if order.text is None:
        return Programs()
    runs = Runs.of(Path(order.trace.path), order.text) if order.options.recorded else Runs()
    return Programs.of(order.text, runs, order.ways)


class Blind(Store):
    """Keeps what it is given and knows nothing: for a search that is to be done again."""

    def get(self, key: str) -> Mapping[str, object] | None:
        return None


class Runner:
    def __init__(self, source: int, sink: int, idle_s: float = IDLE_S) -> None:
        """idle_s: without an order, after which the processes of searches are ended"""
        self._source, self._sink = source, sink
        self._idle_s = idle_s
        self._tools = KeptTools()
        self._orders: queue.Queue[TraceFile | SearchTrace] = queue.Queue()
        self._current: int | None = None
        self._stopped: set[int] = set()
        self._lock = threading.Lock()
        self._has_told_names = False

    def serve(self) -> None:
        began = time.monotonic()
        keep_freed_memory()
        threading.Thread(target=self._listen, name="orders", daemon=True).start()
        begin()
        device = detect()
        self._say(RunnerReady(device, time.monotonic() - began))
        while True:
            order = self._next()
            with self._lock:
                self._current = order.job
            ended = self._done(order)
            with self._lock:
                self._current = None
                self._stopped.discard(order.job)
                self._tools.giving_up.end()
            self._clear_up()
            self._say(ended)
            give_back(0)
            if isinstance(order, SearchTrace):
                self._tools.rest(soon_again=not ended.stopped)
                self._clear_up()

    def _next(self) -> TraceFile | SearchTrace:
        while True:
            try:
                return self._orders.get(timeout=self._idle_s if self._tools.held else None)
            except queue.Empty:
                self._tools.close()

    def _kill_others(self) -> Killed:
        """Than those that serve the next job."""
        return kill_children(keep=process_id(), spare=self._tools.pids)

    def _clear_up(self) -> None:
        """What the user's code has left behind."""
        left = self._kill_others()
        reap(left.children + left.others, 0.1)

    def _done(self, order: TraceFile | SearchTrace) -> Ended:
        try:
            if self._is_stopped(order.job):
                return Ended(order.job, stopped=True)
            if isinstance(order, TraceFile):
                self._trace(order)
                return Ended(order.job, stopped=self._is_stopped(order.job))
            return self._search(order)
        except (UnknownTarget, Unreadable) as error:
            return Ended(order.job, str(error), refused=True)
        except OSError as error:
            _log.info("a job ended", exc_info=True)
            return Ended(order.job, f"the system refuses: {error.strerror or error}")
        except Exception as error:  # whatever it is, the next job must run
            self._tools.close()
            return Ended(order.job, f"an internal error ({type(error).__name__}); details are in {note(error, 'job')}")

    def _trace(self, order: TraceFile) -> None:
        """Raises Unreadable."""
        began = time.monotonic()
        path = Path(order.document.path).absolute()
        text = read_document(order.document)
        runs = Runs.of(path, text) if order.recorded else Runs()
        callers = callers_for(path, text, recorded_shapes=runs.shapes or None, pictures=runs.pictures)
        state = state_of(order.document, text, runs, callers.paths)
        all_ways = state_of(order.document, text, runs, callers.paths, all_ways=True)
        if order.known == all_ways or (order.known == state and not (order.all_ways and runs.ways)):
            self._say(Unchanged(order.job))
            return
        self._say(Tracing(order.job))
        with Store.open() as store:
            trace = traced(
                path,
                source=text,
                recorded_shapes=runs.shapes or None,
                pictures=runs.pictures,
                callers=callers,
                timeout_s=order.timeout_s,
                store=store,
                cancelled=lambda: self._is_stopped(order.job),
            )
            found = with_other_ways(
                trace,
                path,
                text,
                runs if order.all_ways else replace(runs, ways=()),
                timeout_s=order.timeout_s,
                store=store,
                cancelled=lambda: self._is_stopped(order.job),
            )
        if not self._is_stopped(order.job):
            trace, state = found.trace, all_ways if order.all_ways else state
            heads, applied, seconds = _heads(text, trace), _applied(text, trace), time.monotonic() - began
            names = None if self._has_told_names else owned.known()
            self._has_told_names = self._has_told_names or names is not None
            self._say(TracedFile(order.job, text, state, trace, dict(found.ways), heads, applied, seconds, names))

    def _search(self, order: SearchTrace) -> Ended:
        device = detect()
        target = resolve(order.options.target, device)
        tools = self._tools.of(device, target, order.options)
        with Blind(cache_folder() / FILE) if order.again else Store.open() as store:
            events = cast(
                Generator[Event],
                run_trace(
                    order.trace,
                    device,
                    target,
                    order.options,
                    store,
                    lambda: self._is_stopped(order.job),
                    taken=order.taken,
                    programs=_programs(order),
                    tools=tools,
                ),
            )
            with contextlib.closing(events):
                for event in events:
                    if self._is_stopped(order.job):
                        return Ended(order.job, stopped=True)
                    self._say(Happened(order.job, event))
        return Ended(order.job, notices=tuple(store.notices))

    def _is_stopped(self, job: int) -> bool:
        return job in self._stopped

    def _listen(self) -> None:
        while (order := cast(Order | None, read(self._source))) is not None:
            if not isinstance(order, Stop):
                self._orders.put(order)
                continue
            with self._lock:
                self._stopped.add(order.job)
                running = self._current == order.job
                if running:
                    self._tools.giving_up.begin()
            if running:  # it may be waiting for one of them
                reap(self._kill_others().others, 0.1)
        kill_children()
        os._exit(0)

    def _say(self, word: Word) -> None:
        try:
            write(self._sink, word)
        except OSError:  # the front has gone, and there is nobody to tell
            kill_children()
            os._exit(0)


def _heads(text: str, trace: Trace) -> dict[str, Range]:
    """Where the functions of the regions are defined."""
    wanted = {region.function for region in trace.regions}
    try:
        source = Source(trace.path, text)
        found = definitions(source.tree, local=True)
        return {one.name: name_range(source, one.node)[0] for one in found if one.name in wanted}
    except (SyntaxError, ValueError, RecursionError, IndexError) as error:  # the trace has it among its errors
        _log.debug("where functions of %s are defined is not known: %s", trace.path, error)
        return {}


def _applied(text: str, trace: Trace) -> frozenset[int]:
    """Regions in code that an edit of ours has replaced."""
    if ALIAS not in text:
        return frozenset()
    try:
        file = SourceFile(text, None, "utf-8", bom=False)
        spans = edited_spans(ast.parse(text), file)
        places = [(file.offset(region.range.start), file.offset(region.range.end)) for region in trace.regions]
    except (SyntaxError, ValueError, RecursionError, EditError) as error:
        _log.info("what is replaced already in %s is not known: %s", trace.path, error)
        return frozenset()
    return frozenset(
        number
        for number, (start, end) in enumerate(places)
        if any(start < last and first < end for first, last in spans)
    )

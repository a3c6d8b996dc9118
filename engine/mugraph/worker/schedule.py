"""Which job runs, and its way through the runner: traced, searched, told, stopped.

Called from the front's loop only. A job that is to end has `STOP_S` to do so by itself; then the runner is killed with
all it has started, so that a cancelled job has its answer within 200 ms whatever it was doing.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Priority
from mugraph.recording.memory import seen
from mugraph.recording.ways import Way
from mugraph.recording.withheld import withhold
from mugraph.trace.pytorch import owned
from mugraph.trace.report import in_other_files
from mugraph.tune.device import Device
from mugraph.worker.documents import Known, Text
from mugraph.worker.frames import (
    Ended,
    Happened,
    RunnerReady,
    SearchTrace,
    Stop,
    TracedFile,
    TraceFile,
    Tracing,
    Unchanged,
    Word,
)
from mugraph.worker.jobs import Ending, Job, JobQueue
from mugraph.worker.runner_process import RunnerProcess
from mugraph.worker.states import all_states
from mugraph.worker.telling import told

Outcome = Literal["done", "cancelled", "superseded", "failed"]
STOP_S = 0.08
_log = logging.getLogger("mugraph.worker")


class Schedule:
    """
    settings:  for jobs that begin from now on
    device:    None until the runner has looked
    documents: uri -> what is known of it
    problem:   why nothing can be traced or searched here, one sentence; then every job fails with it
    kill_at:   when `time_out` has to be called, by time.monotonic
    restarts:  of the runner
    """

    def __init__(
        self,
        send: Callable[[m.FromEngine], None],
        runner: RunnerProcess,
        ready: Callable[[Device | None, str | None], None],
        error: Callable[[str], None],
    ) -> None:
        """ready: called when the runner can work, or with why it cannot. error: takes note of what went wrong."""
        self._send = send
        self._runner = runner
        self._ready = ready
        self._error = error
        self.settings = EngineSettings()
        self.device: Device | None = None
        self.problem: str | None = None
        self.documents: dict[str, Known] = {}
        self.kill_at: float | None = None
        self.restarts = 0
        self._latest: dict[str, int] = {}
        self._queue = JobQueue()
        self._job: Job | None = None
        self._is_ready = False
        self._runs = itertools.count(1)
        self._orders = itertools.count()

    # ------------------------------------------------------------------ from the server

    def start(self) -> str | None:
        """The runner, so that it is warm when the first job comes. Why it cannot be started, if so."""
        try:
            self._runner.start()
        except OSError as error:
            sentence = f"the process that searches cannot be started: {error.strerror or error}"
            self._ready(None, sentence)
            return sentence
        return None

    def ask(self, request: m.Find | m.Search) -> None:
        document = request.document
        job = Job(request, next(self._orders), request.priority)
        if document.version < self._latest.get(document.uri, document.version):
            self._finish(job, "superseded")
            return
        if self.problem is not None:
            self._finish(job, "failed", self.problem)
            return
        self._latest[document.uri] = document.version
        self._end(lambda job: job.uri == document.uri and job.version < document.version, "superseded")
        self._queue.add(job)
        self._make_room()
        self._next()

    def cancel(self, id: int) -> None:
        self._end(lambda job: job.request.id == id, "cancelled")

    def cancel_document(self, uri: str) -> None:
        self._end(lambda job: job.uri == uri, "cancelled")

    def close(self, uri: str) -> None:
        self.cancel_document(uri)
        self.documents.pop(uri, None)
        self._latest.pop(uri, None)

    def prioritise(self, uri: str, priority: Priority) -> None:
        for job in (*self._queue, *([self._job] if self._job else [])):
            if job.uri == uri:
                job.priority = priority
        self._make_room()

    def open_jobs(self) -> list[str]:
        """Documents with jobs, the running one first."""
        return [job.uri for job in (*([self._job] if self._job else []), *self._queue)]

    # ------------------------------------------------------------------ from the runner

    def heard(self, word: Word) -> None:
        if isinstance(word, RunnerReady):
            self._is_ready, self.device = True, word.device
            self._ready(word.device, None)
            return
        job = self._job
        if job is None or word.job != job.run:
            return
        if isinstance(word, Ended):
            self._ended(job, word)
        elif job.ending is None:
            match word:
                case Tracing():
                    name = Path(job.request.document.path).name
                    self._send(m.Progress(job.request.id, job.uri, job.version, None, f"tracing {name}"))
                case Unchanged():
                    known = self.documents[job.uri]
                    known.at(job.version)
                    if job.all_ways:  # it is said already
                        job.known = known
                    else:
                        self._found(job, known, 0.0)
                case TracedFile():
                    self._traced(job, word)
                case Happened():
                    self._happened(job, word)

    def gone(self, status: int) -> None:
        """The runner has died by itself."""
        self._runner.forget()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        more = "; perhaps memory ran out" if status == -9 else ""
        sentence = f"the process that searches {how}{more}"
        self._error(sentence)
        was_ready, self._is_ready = self._is_ready, False
        job, self._job = self._job, None
        if job is not None:
            if job.ending is not None:
                self._conclude(job, job.ending)
            else:
                self._finish(job, "failed", sentence)
        self.kill_at = None
        if was_ready:  # one that cannot even start is started again when there is something to do
            self.restarts += 1
            self.start()
        else:
            self._ready(None, f"{sentence} before it could work; see the engine's standard error")
        self._next()

    def time_out(self) -> None:
        """The job did not stop in time."""
        job, self._job = self._job, None
        self.kill_at = None
        self._runner.halt()
        if job is not None and job.ending is not None:
            self._conclude(job, job.ending)  # nothing works for it from now on: it need not wait for the rest
        self._runner.kill()
        self._is_ready = False
        self.restarts += 1
        self.start()
        self._next()

    # ------------------------------------------------------------------ a job's way

    def _make_room(self) -> None:
        if self._job is not None and self._job.ending is None and self._queue.more_urgent_than(self._job):
            self._stop(self._job, "put back")

    def _next(self) -> None:
        while self._job is None and (job := self._queue.take()) is not None:
            self._begin(job)

    def _begin(self, job: Job) -> None:
        job.began, job.ending, job.settings = time.monotonic(), None, self.settings
        self._trace(job)

    def _trace(self, job: Job) -> None:
        known, settings = self.documents.get(job.uri), job.settings
        state = known.text.state if known is not None and known.settings == settings else None
        self._runs_now(job)
        document, timeout_s = job.request.document, settings.trace_timeout_s
        self._order(job, TraceFile(job.run or 0, document, settings.recorded, timeout_s, state, job.all_ways))

    def _runs_now(self, job: Job) -> None:
        self._job, job.run = job, next(self._runs)

    def _order(self, job: Job, order: TraceFile | SearchTrace) -> None:
        cannot = self.start()
        if cannot is not None:
            self._job = None
            self._finish(job, "failed", cannot)
            return
        self._runner.order(order)

    def _traced(self, job: Job, word: TracedFile) -> None:
        assert self.device is not None
        if word.names is not None:
            owned.take(word.names)
        text = Text(job.uri, job.version, word.text, word.state)
        calls = seen(Path(job.request.document.path).absolute(), word.text)
        trace = withhold(word.trace, word.text, calls, gpu=self.device.kind == "gpu")
        known = Known(text, job.settings, self.device, trace, word.ways, word.heads, word.applied, word.seconds)
        earlier = self.documents.get(job.uri)
        if earlier is not None:
            known.inherit(earlier)
        self.documents[job.uri] = job.known = known
        self._found(job, known, word.seconds)

    def _found(self, job: Job, known: Known, seconds: float) -> None:
        job.known = known
        queued: list[int] = []
        if isinstance(job.request, m.Search):
            queued = self._searchable(job, job.request, known)
        states = all_states(known, queued)
        said = [*known.trace.errors, *known.trace.notices, *in_other_files(known.trace)]
        self._send(m.Found(job.request.id, job.uri, job.version, states, said, seconds, [*known.trace.shapes_from]))

    def _search(self, job: Job, known: Known) -> None:
        """The second part of a Search: what has no result yet. Then both again, for all the ways in which the functions
        were called: the answer for the first does not wait for these."""
        assert isinstance(job.request, m.Search)
        numbers = job.numbers = self._searchable(job, job.request, known)
        if numbers:
            self._runs_now(job)
            trace, ways = _those(known, numbers)
            taken, again = known.taken(numbers), job.request.again
            options = Options.of(job.settings)
            self._order(job, SearchTrace(job.run or 0, trace, options, ways, taken, again, known.text.text))
        elif job.settings.recorded and not job.all_ways:
            job.all_ways, job.numbers = True, None
            self._trace(job)
        else:
            self._job = None
            self._finish(job, "done", job.message)

    @staticmethod
    def _searchable(job: Job, request: m.Search, known: Known) -> list[int]:
        numbers = known.searchable(request.keys, request.again)
        return [number for number in numbers if known.keys[number] not in job.searched]

    def _happened(self, job: Job, word: Happened) -> None:
        if job.known is not None and job.numbers is not None:
            for message in told(job, job.known, job.numbers, word.event):
                self._send(message)

    # ------------------------------------------------------------------ ends

    def _end(self, which: Callable[[Job], bool], ending: Literal["cancelled", "superseded"]) -> None:
        """Ends the jobs it applies to: those that wait at once, the running one as soon as it has stopped."""
        for job in [job for job in self._queue if which(job)]:
            self._queue.remove(job)
            self._finish(job, ending)
        if self._job is not None and which(self._job):
            if self._job.ending is None:
                self._stop(self._job, ending)
            elif self._job.ending == "put back":
                self._job.ending = ending

    def _stop(self, job: Job, ending: Ending) -> None:
        job.ending = ending
        self._runner.order(Stop(job.run or 0))
        self.kill_at = time.monotonic() + STOP_S

    def _ended(self, job: Job, word: Ended) -> None:
        for notice in word.notices:
            self._send(m.Notice(notice))
        self.kill_at = None
        if job.ending is not None:
            self._job = None
            self._conclude(job, job.ending)
        elif word.error is not None:
            self._job = None
            if not word.refused:
                self._error(word.error)
            self._finish(job, "failed", word.error)
        elif job.known is not None and not self._is_find(job):
            job.searched |= {job.known.keys[number] for number in job.numbers or ()}
            self._search(job, job.known)
        else:
            self._job = None
            self._finish(job, "done", job.message)
        self._next()

    def _conclude(self, job: Job, ending: Ending) -> None:
        """Of a job that was stopped."""
        if ending == "put back":
            job.run, job.known, job.numbers, job.searching = None, None, None, None
            job.all_ways, job.searched = False, set()
            self._queue.add(job)
        else:
            self._finish(job, ending)

    def _finish(self, job: Job, outcome: Outcome, message: str = "") -> None:
        request = job.request
        if isinstance(request, m.Find):
            if outcome != "done":
                self._send(m.Failed(request.id, message or outcome))
            return
        seconds = time.monotonic() - job.began
        self._send(m.Finished(request.id, job.uri, job.version, outcome, message, seconds))

    @staticmethod
    def _is_find(job: Job) -> bool:
        return isinstance(job.request, m.Find)


def _those(known: Known, numbers: Sequence[int]) -> tuple[Trace, dict[int, Way]]:
    """The trace with these regions only, and the ways that they are of, by their new positions."""
    old = known.trace
    regions = tuple(old.regions[number] for number in numbers)
    shares = {at: old.shares[number] for at, number in enumerate(numbers) if number in old.shares}
    ways = {at: known.ways[number] for at, number in enumerate(numbers) if number in known.ways}
    return replace(old, regions=regions, shares=shares, errors=()), ways

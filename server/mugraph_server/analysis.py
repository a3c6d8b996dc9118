"""When what is asked of the engine: opened, edited, saved and changed files become searches, as few as possible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mugraph.protocol import messages as m
from mugraph.protocol.messages import FromEngine
from mugraph.protocol.values import Document as EngineDocument
from mugraph.protocol.values import Priority

from mugraph_server.documents.documents import Documents, Edit
from mugraph_server.documents.source import Source
from mugraph_server.engine.client import ids
from mugraph_server.engine.engines import Engines
from mugraph_server.engine.state import EngineGone, EngineRefused
from mugraph_server.log import logger
from mugraph_server.regions import Pace, Regions
from mugraph_server.relevance import Look, look_apart
from mugraph_server.settings import Settings

JUDGE_S = 0.25
"""Quiet time after an edit until the text is looked at."""
SAVE_QUIET_S = 1.0
"""The first save counts at once; those that follow closely count when they are over, as one."""
IDLE_SEARCH_S = 2.0
"""Untitled texts and notebook cells are seldom saved: searched when nothing was typed for so long."""
_EDITS_KEPT = 2_000
_KERNELS = "mugraph_kernels"


@dataclass
class Asked:
    """A question under way, and what has been edited since."""

    stamp: int
    fingerprint: str
    edits: list[Edit] = field(default_factory=list[Edit])
    dropped: bool = False


@dataclass
class _Work:
    """What goes on about one source.

    crashed: fingerprints that an engine ended over, and how often
    missed:  fingerprint of a text whose results came while the text was another one, and were dropped
    """

    asked: Asked | None = None
    task: asyncio.Task[None] | None = None
    judging: asyncio.TimerHandle | None = None
    waiting: asyncio.TimerHandle | None = None
    last_want: float = -1e9
    missed: str = ""
    crashed: dict[str, int] = field(default_factory=dict[str, int])


class Analysis:
    """A Documents' listener. notice: a sentence the user should see."""

    def __init__(
        self,
        regions: Regions,
        engines: Engines,
        settings: Callable[[], Settings],
        notice: Callable[[str], None],
    ) -> None:
        self._regions = regions
        self._engines = engines
        self._settings = settings
        self._notice = notice
        self._work: dict[str, _Work] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.documents = Documents(self, engines.first_root)
        self.on_open: Callable[[Source], None] = lambda _: None
        self.on_close: Callable[[Source], None] = lambda _: None
        self.searches = 0
        self.dropped = 0
        self._others: dict[str, Source] = {}

    # --- what the editor does -----------------------------------------------------------------------------------

    def opened(self, source: Source) -> None:
        self._others.pop(source.uri, None)
        self._regions.file(source.uri)
        self.on_open(source)
        self._spawn(self._first_look(source))

    async def _first_look(self, source: Source) -> None:
        await asyncio.sleep(0)  # the editor's next messages first: a hundred files may open at once
        if self._is_current(source):
            await self._consider(source, "visible", search=self._settings().search_on == "open")

    def edited(self, source: Source, edits: Sequence[Edit]) -> None:
        work = self._of(source)
        if work.asked is not None:
            work.asked.edits += edits
            if len(work.asked.edits) > _EDITS_KEPT:
                work.asked = None  # what it finds could still be moved, but it is another text by now
        self._regions.edited(source.uri, edits)
        if work.judging is not None:
            work.judging.cancel()
        loop = asyncio.get_running_loop()
        work.judging = loop.call_later(JUDGE_S, lambda: self._spawn(self._judge(source)))

    def saved(self, source: Source) -> None:
        self._wish(source, "saved", self._settings().search_on != "demand")

    def closed(self, source: Source) -> None:
        self.on_close(source)
        work = self._work.pop(source.uri, None)
        if work is not None:
            for timer in (work.judging, work.waiting):
                if timer is not None:
                    timer.cancel()
            if work.task is not None:
                work.task.cancel()
        self._engines.of(source.path).tell(m.Close(source.uri))
        self._regions.drop(source.uri)

    def shown(self, uri: str) -> None:
        """The user looks at it: its job goes before those of files in the background."""
        source = self.documents.source(uri)
        work = self._work.get(source.uri) if source is not None else None
        if source is not None and work is not None and work.task is not None and not work.task.done():
            self._engines.of(source.path).tell(m.Prioritise(source.uri, "visible"))

    def outside(self, path: str) -> None:
        """The file changed on disk. If it is open and now as its buffer is, that is as good as a save, and the same
        save when the editor wrote it itself."""
        self._spawn(self._look_outside(path))

    async def _look_outside(self, path: str) -> None:
        source = self.documents.by_path(path)
        if source is None:
            if path.endswith(".py"):
                for other in self.documents.sources:
                    if other.kind == "file" and Path(other.path).parent == Path(path).parent:
                        await self._check_kernels(other)
            return
        try:
            text = await asyncio.to_thread(Path(path).read_bytes)
        except OSError:
            return
        if self._is_current(source) and text.decode(errors="replace") == source.text:
            self._wish(source, "visible", self._settings().search_on != "demand")

    # --- what the user asks for ----------------------------------------------------------------------------------

    def search_again(self, uri: str, keys: list[str] | None = None) -> bool:
        source = self.source(uri)
        if source is None:
            return False
        self._of(source).crashed.clear()
        self._spawn(self._consider(source, "saved", search=True, again=True, keys=keys))
        return True

    def cancel(self, uri: str) -> None:
        source = self.source(uri)
        if source is not None:
            self._engines.of(source.path).tell(m.CancelDocument(source.uri))

    def again_all(self) -> None:
        """After a change of engine or settings: what is open is searched under the new ones."""
        for source in self.documents.sources:
            file = self._regions.get(source.uri)
            if file is not None:
                file.fingerprint = ""
            self._of(source).crashed.clear()
            self._spawn(self._consider(source, "visible", search=self._settings().search_on == "open"))

    def stop_all(self) -> None:
        """Nothing is asked any more, what is known is forgotten: disabled, or not trusted."""
        for work in self._work.values():
            if work.task is not None:
                work.task.cancel()
            work.asked = None
        self._regions.clear()

    async def search_file(self, source: Source) -> None:
        """One that is not open, to the end."""
        self._others[source.uri] = source
        await self._consider(source, "background", search=True)
        work = self._work.get(source.uri)
        if work is not None and work.task is not None:
            await asyncio.wait({work.task})

    def source(self, uri: str) -> Source | None:
        return self.documents.source(uri) or self._others.get(uri)

    def sources(self) -> list[Source]:
        return [*self.documents.sources, *self._others.values()]

    def forget_others(self) -> None:
        for uri in list(self._others):
            del self._others[uri]
            self._work.pop(uri, None)

    def engine_document(self, source: Source) -> EngineDocument:
        """Always with its text: an engine on another machine has no other way to it."""
        return EngineDocument(source.uri, source.path, source.stamp, source.text)

    # --- looking ---------------------------------------------------------------------------------------------------

    async def look(self, source: Source) -> Look:
        found = source.known_look()
        if found is None:
            stamp, text = source.stamp, source.text
            found = await look_apart(text)
            source.keep_look(stamp, found)
        return found

    async def _judge(self, source: Source) -> None:
        """After a pause in typing."""
        stamp = source.stamp
        look = await self.look(source)
        if not self._is_current(source) or source.stamp != stamp:
            return
        self._regions.judged(source.uri, look.fingerprint, look.error)
        file = self._regions.file(source.uri)
        again = any(mark.touched for mark in file.marks) or self._of(source).missed == look.fingerprint
        if again and not file.stale and not look.error:  # edited to and fro: the same code again, but its places have to be found anew
            file.fingerprint = ""
            self._wish(source, "visible", self._settings().search_on != "demand")
        elif source.kind != "file" and self._settings().search_on != "demand":
            work = self._of(source)
            loop = asyncio.get_running_loop()
            if work.waiting is not None:
                work.waiting.cancel()
            work.waiting = loop.call_later(IDLE_SEARCH_S, lambda: self._go(source, "visible", True))

    def _wish(self, source: Source, priority: Priority, search: bool) -> None:
        """The first at once, those close behind it when they are over."""
        loop = asyncio.get_running_loop()
        work = self._of(source)
        quiet = loop.time() - work.last_want >= SAVE_QUIET_S
        work.last_want = loop.time()
        if work.waiting is not None:
            work.waiting.cancel()
            work.waiting = None
        if quiet:
            self._go(source, priority, search)
        else:
            work.waiting = loop.call_later(SAVE_QUIET_S, lambda: self._go(source, priority, search))

    def _go(self, source: Source, priority: Priority, search: bool) -> None:
        self._of(source).waiting = None
        self._spawn(self._consider(source, priority, search=search))

    async def _consider(
        self, source: Source, priority: Priority, *, search: bool, again: bool = False, keys: list[str] | None = None
    ) -> None:
        """Ask the engine about it, if there is anything to ask that has not been answered or asked."""
        settings = self._settings()
        if not settings.enable or not settings.trusted:
            return
        stamp = source.stamp
        look = await self.look(source)
        if not self._is_current(source) or source.stamp != stamp:
            return  # edited or closed meanwhile; the edit brings us here again
        file = self._regions.file(source.uri)
        self._regions.judged(source.uri, look.fingerprint, look.error)
        if look.error or not look.matters:
            if not look.error and file.marks:
                self._regions.found(source.uri, source.stamp, look.fingerprint, (), (), [])
            return
        work = self._of(source)
        if not again and work.asked is not None and work.asked.fingerprint == look.fingerprint and _runs(work.task):
            return
        known = file.fingerprint == look.fingerprint and work.missed != look.fingerprint
        if not again and known and not any(mark.touched for mark in file.marks):
            await self._check_kernels(source)
            return
        if _runs(work.task):
            assert work.task is not None
            work.task.cancel()  # tells the engine as well
        work.asked = Asked(stamp, look.fingerprint)
        work.missed = ""
        self._regions.asked(source.uri, look.heads)
        self.searches += search
        work.task = self._spawn(self._ask(source, work, work.asked, priority, search, again, keys))

    async def _ask(
        self,
        source: Source,
        work: _Work,
        asked: Asked,
        priority: Priority,
        search: bool,
        again: bool,
        keys: list[str] | None,
    ) -> None:
        """One search, and once more if the engine died of something else in between."""
        keeper = self._engines.of(source.path)
        document = self.engine_document(source)
        outcome, message = "done", ""
        while True:
            try:
                if search:
                    request = m.Search(next(ids), document, priority, keys, again)
                    finished = await keeper.ask(request, m.Finished)
                    outcome, message = finished.outcome, finished.message
                else:
                    await keeper.ask(m.Find(next(ids), document, priority), m.Found)
            except EngineRefused as error:
                outcome, message = ("cancelled", "") if str(error) == "cancelled" else ("failed", str(error))
                outcome = "superseded" if str(error) == "superseded" else outcome
            except EngineGone as gone:
                if work.asked is not asked:
                    return
                count = work.crashed[asked.fingerprint] = work.crashed.get(asked.fingerprint, 0) + 1
                if keeper.status.state in ("starting", "restarting", "running") and count < 2:
                    continue
                outcome = "failed"
                message = str(gone) if keeper.status.state == "errored" else f"{gone}, twice over this file"
            break
        if work.asked is not asked:
            return
        if asked.dropped:
            work.missed = asked.fingerprint
        if outcome == "superseded" and self._is_current(source):
            # Something else about a newer text came between, an edit being prepared perhaps: nobody else asks again.
            work.asked = None
            self._spawn(self._retry(source, asked.fingerprint, priority, search))
            return
        unfinished = {"done": None, "cancelled": "stale", "superseded": "stale", "failed": "failed"}[outcome]
        if outcome == "cancelled":
            self._regions.file(source.uri).fingerprint = ""  # the next save searches what was left
        self._regions.finished(source.uri, message if outcome == "failed" else "", unfinished)
        await self._check_kernels(source)

    async def _retry(self, source: Source, fingerprint: str, priority: Priority, search: bool) -> None:
        if (await self.look(source)).fingerprint == fingerprint and self._is_current(source):
            self._regions.file(source.uri).fingerprint = ""
            await self._consider(source, priority, search=search)

    async def _check_kernels(self, source: Source) -> None:
        """Whether the generated kernels it uses still fit it."""
        file = self._regions.get(source.uri)
        if _KERNELS not in source.text:
            if file is not None and file.checks:
                self._regions.checked(source.uri, (), [])
            return
        stamp = source.stamp
        try:
            request = m.CheckKernels(next(ids), self.engine_document(source))
            found = await self._engines.of(source.path).ask(request, m.KernelChecks)
        except (EngineGone, EngineRefused):
            return
        if self._is_current(source) and source.stamp == stamp:
            self._regions.checked(source.uri, found.checks, [])

    # --- what the engine says ----------------------------------------------------------------------------------------

    def event(self, message: FromEngine) -> None:
        if isinstance(message, m.Notice):
            self._notice(message.message)
            return
        if not isinstance(message, m.Found | m.RegionChanged | m.Progress | m.FirstHit | m.BetterHit):
            return
        asked = self._fitting(message.uri, message.version)
        if asked is None:
            self.dropped += 1
            work = self._work.get(message.uri)
            if work is not None and work.asked is not None:
                work.asked.dropped = True
            return
        uri = message.uri
        if isinstance(message, m.Found):
            self._regions.found(uri, asked.stamp, asked.fingerprint, message.regions, message.errors, asked.edits)
        elif isinstance(message, m.RegionChanged):
            self._regions.pace(uri, message.region.key, lambda p: replace(p, number=message.number, of=message.of))
            self._regions.region(uri, message.region, asked.edits)
        elif isinstance(message, m.Progress):
            self._regions.pace(uri, message.key, lambda p: _paced(p, message))
        elif isinstance(message, m.FirstHit):
            self._regions.pace(uri, message.key, lambda p: replace(p, first_hit_s=message.seconds), True)
        else:
            self._regions.pace(uri, message.key, lambda p: replace(p, estimate_us=message.estimate_us))

    def _fitting(self, uri: str, stamp: int) -> Asked | None:
        """The question that this is about, if the text still means what it was asked about."""
        work, source = self._work.get(uri), self.source(uri)
        if work is None or source is None or work.asked is None or work.asked.stamp != stamp:
            return None
        if source.stamp == stamp:
            return work.asked
        look = source.known_look()
        return work.asked if look is not None and look.fingerprint == work.asked.fingerprint else None

    # --- small things -------------------------------------------------------------------------------------------------

    def _of(self, source: Source) -> _Work:
        return self._work.setdefault(source.uri, _Work())

    def _is_current(self, source: Source) -> bool:
        return self.source(source.uri) is source

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("something failed in the background", exc_info=error)


def _runs(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done()


def _paced(pace: Pace, message: m.Progress) -> Pace:
    return replace(
        pace,
        what=message.what,
        number=message.number,
        of=message.of,
        topologies=message.topologies,
        seconds=message.seconds,
    )

"""When to ask the engine what: files that are opened, edited, saved or changed lead to as few searches as possible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mugraph.protocol.settings import Settings
from mugraph.protocol.values import Priority

from mugraph_server.documents.documents import Documents, Edit
from mugraph_server.documents.source import Source
from mugraph_server.log import logger
from mugraph_server.regions import Regions
from mugraph_server.relevance import Look, is_installed, look_apart
from mugraph_server.roots import Roots
from mugraph_server.searches import Searches, Spawn, Want

JUDGE_S = 0.25
"""Quiet time after an edit until the text is looked at."""
SAVE_QUIET_S = 1.0
"""After a save, for which further saves are counted as one, when it has passed. The first save counts at once."""
IDLE_SEARCH_S = 2.0
"""Untitled texts and notebook cells are seldom saved: they are searched when nothing was typed for this long."""


@dataclass
class _Timers:
    """The timers of one source. last: when it was last asked for, by the loop's clock. told: what the source meant when
    files that depend on it were last looked at"""

    judging: asyncio.TimerHandle | None = None
    waiting: asyncio.TimerHandle | None = None
    last: float = -1e9
    told: str = ""

    def cancel(self) -> None:
        for timer in (self.judging, self.waiting):
            if timer is not None:
                timer.cancel()


class Analysis:
    """A Documents' listener. ready: waits until it is known how to search. settings: of a source's root."""

    def __init__(
        self,
        regions: Regions,
        searches: Searches,
        roots: Roots,
        settings: Callable[[Source], Settings],
        ready: Callable[[], Awaitable[object]],
        spawn: Spawn,
    ) -> None:
        self._regions = regions
        self._searches = searches
        self._settings = settings
        self._ready = ready
        self._spawn = spawn
        self._timers: dict[str, _Timers] = {}
        self._others: dict[str, Source] = {}
        self.documents = Documents(self, roots.first)
        self.on_open: Callable[[Source], None] = lambda _: None
        self.on_close: Callable[[Source], None] = lambda _: None
        self.on_settled: Callable[[Source], None] = lambda _: None
        searches.ended = lambda source: self.on_settled(source)
        searches.superseded = self._superseded

    def source(self, uri: str) -> Source | None:
        return self.documents.source(uri) or self._others.get(uri)

    # --- what the editor does -----------------------------------------------------------------------------------

    def opened(self, source: Source) -> None:
        other = self._others.pop(source.uri, None)
        if other is not None:
            self._searches.close(other)
        self._regions.file(source.uri)
        self.on_open(source)
        self._spawn(self._first_look(source))

    async def _first_look(self, source: Source) -> None:
        await asyncio.sleep(0)  # the editor's next messages first: a hundred files may open at once
        await self._ready()
        if self._is_current(source):
            await self.consider(source, Want("visible", self._settings(source).search_on == "open"))

    def edited(self, source: Source, edits: Sequence[Edit]) -> None:
        self._searches.edited(source, edits)
        self._regions.edited(source.uri, edits)
        timers = self._of(source)
        if timers.judging is not None:
            timers.judging.cancel()
        loop = asyncio.get_running_loop()
        timers.judging = loop.call_later(JUDGE_S, lambda: self._spawn(self._judge(source)))

    def saved(self, source: Source) -> None:
        self._wish(source, "saved")
        self._spawn(self._tell_dependents(source))

    async def _tell_dependents(self, source: Source) -> None:
        """Other open files may be called by this one: what it means has changed."""
        look, timers = await self.look(source), self._of(source)
        if source.kind == "file" and not look.error and timers.told != look.fingerprint:
            timers.told = look.fingerprint
            self._look_at_dependents([source.path])

    def _look_at_dependents(self, paths: Sequence[str]) -> None:
        for source in self.documents.sources:
            file = self._regions.get(source.uri)
            if file is None or source.kind != "file" or file.stale or not file.fingerprint:
                continue
            if any(path != source.path and file.depends_on(path) for path in paths):
                file.fingerprint = ""
                self._wish(source, "visible")

    def closed(self, source: Source) -> None:
        self.on_close(source)
        timers = self._timers.pop(source.uri, None)
        if timers is not None:
            timers.cancel()
        self._searches.close(source)
        self._regions.drop(source.uri)

    def shown(self, source: Source) -> None:
        self._searches.shown(source)

    def outside(self, paths: Sequence[str]) -> None:
        """Files were changed on disk. If an open file now equals its buffer, that counts as a save; if the editor
        wrote it, the editor reports the same save."""
        self._spawn(self._look_outside(paths))

    async def _look_outside(self, paths: Sequence[str]) -> None:
        folders: set[Path] = set()
        self._look_at_dependents([path for path in paths if self.documents.by_path(path) is None])
        for path in paths:
            source = self.documents.by_path(path)
            if source is None:
                folders.add(Path(path).parent)
                continue
            try:
                data = await asyncio.to_thread(Path(path).read_bytes)
            except OSError as error:  # deleted since
                logger.debug("%s cannot be read: %s", path, error)
                continue
            if self._is_current(source) and data.decode(errors="replace") == source.text:
                self._wish(source, "visible")
        for source in self.documents.sources:  # a kernel module that was deleted, or is another one now
            if source.kind == "file" and Path(source.path).parent in folders:
                self.on_settled(source)

    # --- what the user asks for ---------------------------------------------------------------------------------

    def search(self, source: Source, keys: tuple[str, ...] | None = None, again: bool = True) -> None:
        self._searches.forgive(source)
        self._spawn(self.consider(source, Want("saved", True, again, keys), forced=True))

    def again_all(self) -> None:
        """After a change of engine or settings: everything that is open is looked at again."""
        for source in self.documents.sources:
            self._regions.file(source.uri).fingerprint = ""
            self._searches.forgive(source)
            self._spawn(self._first_look(source))

    def stop_all(self) -> None:
        """Asks nothing more and forgets what is known: mugraph is disabled, or the workspace is not trusted."""
        self._searches.abandon_all()
        self.forget_others()
        self._regions.clear()

    async def search_other(self, source: Source) -> None:
        """Searches a file that is not open."""
        self._others[source.uri] = source
        await self.consider(source, Want("background", True))
        await self._searches.settle(source)

    def forget_others(self) -> None:
        for source in list(self._others.values()):
            self._searches.close(source)
            self._regions.drop(source.uri)
        self._others.clear()

    async def known(self, source: Source, keys: Sequence[str] | None = None) -> None:
        """Waits until the source's engine knows the results for these regions, or for all. An engine that has just been
        started knows none; it is asked again and answers from the store, without a search."""
        file = self._regions.file(source.uri)
        if not self._searches.is_known(source):
            file.fingerprint = ""
            await self.consider(source, Want("saved", True))
            await self._searches.settle(source)
        elif any(mark.is_open for mark in file.marks if keys is None or mark.key in keys):
            await self._searches.settle(source)  # shown is what the engine before found, or what was found before

    # --- looking ------------------------------------------------------------------------------------------------

    async def look(self, source: Source) -> Look:
        found = source.known_look()
        if found is None:
            stamp, text = source.stamp, source.text
            found = await look_apart(text)
            source.keep_look(stamp, found)
        return found

    def judge_now(self, source: Source) -> None:
        """Whether an edited text still parses, before something is said about it. A large text is judged in its
        turn."""
        file = self._regions.get(source.uri)
        look = source.known_look() if file is not None and file.unjudged else None
        if look is not None:
            self._regions.judged(source.uri, look.fingerprint, look.error)

    async def _judge(self, source: Source) -> None:
        """After a pause in typing."""
        stamp = source.stamp
        look = await self.look(source)
        if not self._is_current(source) or source.stamp != stamp:
            return
        self._regions.judged(source.uri, look.fingerprint, look.error, late=not source.is_small)
        file = self._regions.file(source.uri)
        if file.checks and not look.error:
            self.on_settled(source)  # a kernel may have ceased to fit, and may fit again
        lost = any(mark.touched for mark in file.marks) or self._searches.missed(source, look.fingerprint)
        if lost and not file.stale and not look.error:
            # Edited and edited back: the code is the same, but its places must be found again.
            file.fingerprint = ""
            self._wish(source, "visible")
        elif source.kind != "file" and self._settings(source).search_on != "demand":
            timers = self._of(source)
            if timers.waiting is not None:
                timers.waiting.cancel()
            timers.waiting = asyncio.get_running_loop().call_later(IDLE_SEARCH_S, lambda: self._go(source, "visible"))

    def _wish(self, source: Source, priority: Priority) -> None:
        """The first wish counts at once; those that follow closely count together, when they are over."""
        loop = asyncio.get_running_loop()
        timers = self._of(source)
        quiet = loop.time() - timers.last >= SAVE_QUIET_S
        timers.last = loop.time()
        if timers.waiting is not None:
            timers.waiting.cancel()
            timers.waiting = None
        if quiet:
            self._go(source, priority)
        else:
            timers.waiting = loop.call_later(SAVE_QUIET_S, lambda: self._go(source, priority))

    def _go(self, source: Source, priority: Priority) -> None:
        self._of(source).waiting = None
        self._spawn(self.consider(source, Want(priority, self._settings(source).search_on != "demand")))

    async def consider(self, source: Source, want: Want, forced: bool = False) -> None:
        """Asks the engine about the source, unless that has been answered or asked already. forced: ask even then."""
        settings = self._settings(source)
        if not settings.enable or not settings.trusted or is_installed(source.path):
            return
        stamp = source.stamp
        look = await self.look(source)
        if not self._is_current(source) or source.stamp != stamp:
            return  # edited or closed meanwhile; the edit brings us here again
        file = self._regions.file(source.uri)
        self._regions.judged(source.uri, look.fingerprint, look.error)
        if look.error or not look.matters:
            if not look.error and (file.marks or file.errors):
                self._regions.found(source.uri, source.stamp, look.fingerprint, (), (), [])
            if not look.error:
                self.on_settled(source)
            return
        if not forced:
            if self._searches.is_asked(source, look.fingerprint):
                return
            known = file.fingerprint == look.fingerprint and not self._searches.missed(source, look.fingerprint)
            only_traced = want.search and any(mark.region.status == "queued" for mark in file.marks)
            if known and not only_traced and not any(mark.touched for mark in file.marks):
                self.on_settled(source)
                return
        elif want.keys is not None and self._searches.is_asked(source, look.fingerprint):
            want = replace(want, keys=None)  # what the running search was still to do is not to be lost
        self._searches.begin(source, look.fingerprint, look.heads, want)

    def _superseded(self, source: Source, want: Want, fingerprint: str) -> None:
        """The engine dropped the question for one about a newer text: nobody else asks it again."""
        self._spawn(self._ask_again(source, want, fingerprint))

    async def _ask_again(self, source: Source, want: Want, fingerprint: str) -> None:
        if (await self.look(source)).fingerprint == fingerprint and self._is_current(source):
            self._regions.file(source.uri).fingerprint = ""
            await self.consider(source, want)

    def _of(self, source: Source) -> _Timers:
        return self._timers.setdefault(source.uri, _Timers())

    def _is_current(self, source: Source) -> bool:
        return self.source(source.uri) is source

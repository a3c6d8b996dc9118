"""The work under way for each source: at most one question to its engine, what the engine finds, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace

from mugraph.protocol import messages as m
from mugraph.protocol.messages import FromEngine
from mugraph.protocol.values import Document as EngineDocument
from mugraph.protocol.values import Priority, RegionStatus

from mugraph_server.documents.documents import Edit
from mugraph_server.documents.source import Source
from mugraph_server.engine.client import EVENTS, ids
from mugraph_server.engine.engines import Engines
from mugraph_server.engine.keeper import Keeper
from mugraph_server.engine.state import EngineGone, EngineRefused
from mugraph_server.log import logger
from mugraph_server.region_marks import Pace
from mugraph_server.regions import Regions

_EDITS_KEPT = 2_000
_TRIES = 2
"""How often a text is asked about when engines end over it."""

Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]


@dataclass(frozen=True)
class Want:
    """What is to be asked. search: False only traces. keys: of the regions to search, None for all."""

    priority: Priority
    search: bool
    again: bool = False
    keys: tuple[str, ...] | None = None


@dataclass
class _Asked:
    """A question under way. edits: of the source since then. dropped: a result came for a text that was not the current
    one."""

    stamp: int
    fingerprint: str
    want: Want
    edits: list[Edit] = field(default_factory=list[Edit])
    dropped: bool = False


@dataclass
class _Work:
    """
    crashed:  fingerprints that an engine ended over, and how often
    missed:   fingerprint of a text whose results came while the text was another one, and were dropped
    known_by: the engine, and its generation, that knows what was found
    """

    asked: _Asked | None = None
    task: asyncio.Task[None] | None = None
    missed: str = ""
    crashed: dict[str, int] = field(default_factory=dict[str, int])
    known_by: tuple[Keeper, int] | None = None


class Searches:
    """source: the one with that uri, while it is there. spawn: runs something in the background.

    ended:      called with a source whose question has been answered
    superseded: called when the engine dropped a question for a newer one that was not about the whole source
    """

    def __init__(
        self,
        regions: Regions,
        engines: Engines,
        source: Callable[[str], Source | None],
        spawn: Spawn,
    ) -> None:
        self._regions = regions
        self._engines = engines
        self._source = source
        self._spawn = spawn
        self._work: dict[str, _Work] = {}
        self.ended: Callable[[Source], None] = lambda _: None
        self.superseded: Callable[[Source, Want, str], None] = _nothing
        self.begun = 0
        self.dropped = 0

    # --- what is asked ------------------------------------------------------------------------------------------

    def begin(self, source: Source, fingerprint: str, heads: tuple[int, ...], want: Want) -> None:
        work = self._of(source)
        self._abandon(work)
        asked = work.asked = _Asked(source.stamp, fingerprint, want)
        work.missed = ""
        self._regions.asked(source.uri, heads, want.search)
        self.begun += want.search
        work.task = self._spawn(self._ask(source, work, asked))

    def is_asked(self, source: Source, fingerprint: str) -> bool:
        """Whether the answer for such a text is under way."""
        work = self._work.get(source.uri)
        return work is not None and _runs(work) and work.asked is not None and work.asked.fingerprint == fingerprint

    def missed(self, source: Source, fingerprint: str) -> bool:
        work = self._work.get(source.uri)
        return work is not None and work.missed == fingerprint

    def edited(self, source: Source, edits: Sequence[Edit]) -> None:
        work = self._work.get(source.uri)
        if work is not None and work.asked is not None:
            work.asked.edits += edits
            if len(work.asked.edits) > _EDITS_KEPT:
                work.asked = None  # what it finds could still be moved, but it is another text by now

    def shown(self, source: Source) -> None:
        """The user looks at the source: its job goes before those of files in the background."""
        work = self._work.get(source.uri)
        if work is not None and _runs(work) and work.asked is not None and work.asked.want.priority == "background":
            self._engines.of(source.path).tell(m.Prioritise(source.uri, "visible"))

    def cancel(self, source: Source) -> None:
        """Cancels a search for the user. Answers still come, and what was found stays."""
        self._engines.of(source.path).tell(m.CancelDocument(source.uri))

    def forgive(self, source: Source) -> None:
        """Texts that engines crashed on may be asked about again."""
        self._of(source).crashed.clear()

    def abandon_all(self) -> None:
        """Cancels all questions: nobody waits for the answers any more."""
        for uri, work in self._work.items():
            if _runs(work):
                self._abandon(work)
                self._regions.finished(uri, "", "stale")

    def close(self, source: Source) -> None:
        work = self._work.pop(source.uri, None)
        if work is not None:
            self._abandon(work)
            self._engines.of(source.path).tell(m.Close(source.uri))

    async def settle(self, source: Source) -> None:
        """Waits until the question about the source is answered."""
        work = self._work.get(source.uri)
        if work is not None and work.task is not None:
            await asyncio.wait({work.task})

    def is_known(self, source: Source) -> bool:
        """Whether the engine that would be asked now is the one that found what is shown."""
        work = self._work.get(source.uri)
        keeper = self._engines.of(source.path)
        return work is not None and work.known_by == (keeper, keeper.generation)

    def document(self, source: Source) -> EngineDocument:
        """The document as the engine gets it, always with its text: an engine on another machine cannot read the
        file."""
        return EngineDocument(source.uri, source.path, source.stamp, source.text)

    async def _ask(self, source: Source, work: _Work, asked: _Asked) -> None:
        """Asks for one search, and once more if the engine died of something else meanwhile."""
        outcome, message = await self._answer(source, work, asked)
        if work.asked is not asked:
            return
        if asked.dropped:
            work.missed = asked.fingerprint
        if outcome == "superseded":
            work.asked = None
            self.superseded(source, asked.want, asked.fingerprint)
            return
        unfinished: dict[str, RegionStatus | None] = {"done": None, "cancelled": "stale", "failed": "failed"}
        if outcome == "cancelled":
            self._regions.file(source.uri).fingerprint = ""  # the next save searches what was left
        self._regions.finished(source.uri, message if outcome == "failed" else "", unfinished[outcome])
        self.ended(source)

    async def _answer(self, source: Source, work: _Work, asked: _Asked) -> tuple[str, str]:
        """Its outcome and a sentence about it."""
        want = asked.want
        document = self.document(source)
        while True:
            keeper = self._engines.of(source.path)
            try:
                if not want.search:
                    await keeper.ask(m.Find(next(ids), document, want.priority), m.Found)
                    return "done", ""
                keys = list(want.keys) if want.keys is not None else None
                request = m.Search(next(ids), document, want.priority, keys, want.again)
                finished = await keeper.ask(request, m.Finished)
                return finished.outcome, finished.message
            except EngineRefused as error:
                return (str(error), "") if str(error) in ("cancelled", "superseded") else ("failed", str(error))
            except EngineGone as gone:
                count = work.crashed[asked.fingerprint] = work.crashed.get(asked.fingerprint, 0) + 1
                logger.info("the engine ended over %s: %s", source.path, gone)
                if work.asked is not asked or keeper.status.state in ("errored", "exited"):
                    return "failed", str(gone)
                if count >= _TRIES:
                    return "failed", f"{gone}, {count} times over this file"

    def _abandon(self, work: _Work) -> None:
        work.asked = None
        if work.task is not None and not work.task.done():
            work.task.cancel()  # tells the engine as well

    # --- what is found ------------------------------------------------------------------------------------------

    def event(self, message: FromEngine) -> None:
        if not isinstance(message, EVENTS):
            return
        uri, regions = message.uri, self._regions
        work, source = self._work.get(uri), self._source(uri)
        if work is None or source is None:
            self.dropped += 1
            return
        asked = self._fitting(source, work, message.version)
        if asked is None:
            self.dropped += 1
            if work.asked is not None:
                work.asked.dropped = True
        elif isinstance(message, m.Found):
            keeper = self._engines.of(source.path)
            work.known_by = keeper, keeper.generation
            regions.found(
                uri,
                asked.stamp,
                asked.fingerprint,
                message.regions,
                message.errors,
                asked.edits,
                message.shapes_from,
            )
        elif isinstance(message, m.RegionChanged):
            regions.pace(uri, message.region.key, lambda p: replace(p, number=message.number, of=message.of))
            regions.region(uri, message.region, asked.edits)
        elif isinstance(message, m.Progress):
            regions.pace(uri, message.key, lambda p: _paced(p, message))
        elif isinstance(message, m.FirstHit):
            regions.pace(uri, message.key, lambda p: replace(p, first_hit_s=message.seconds), True)
        else:
            regions.pace(uri, message.key, lambda p: p.met(message.candidate))

    def _fitting(self, source: Source, work: _Work, stamp: int) -> _Asked | None:
        """The question that a message belongs to, if the text still means what it meant when it was asked."""
        if work.asked is None or work.asked.stamp != stamp:
            return None
        if source.stamp == stamp:
            return work.asked
        look = source.known_look()
        return work.asked if look is not None and look.fingerprint == work.asked.fingerprint else None

    def _of(self, source: Source) -> _Work:
        return self._work.setdefault(source.uri, _Work())


def _nothing(source: Source, want: Want, fingerprint: str) -> None:
    return None


def _runs(work: _Work) -> bool:
    return work.task is not None and not work.task.done()


def _paced(pace: Pace, message: m.Progress) -> Pace:
    return replace(
        pace,
        what=message.what,
        number=message.number,
        of=message.of,
        topologies=message.topologies,
        seconds=message.seconds,
    )

"""A file that is saved on a clock that the test turns: the server's analysis and searches, without processes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from lsprotocol import types
from mugraph.protocol import messages as m
from mugraph.protocol.settings import Settings
from mugraph_server.analysis import Analysis
from mugraph_server.engine.engines import Engines
from mugraph_server.regions import Regions
from mugraph_server.roots import Roots
from mugraph_server.searches import Searches

URI = "file:///workspace/model.py"
_TURNS = 50
"""Of the loop, after which all that is due has been done."""


class ClockLoop(asyncio.SelectorEventLoop):
    """Its time is what the test says it is."""

    now = 0.0

    def time(self) -> float:
        return self.now


class _Keeper:
    """An engine that answers at once, and is asked to search `searched`, text by text."""

    generation = 1

    def __init__(self) -> None:
        self.searched: list[str] = []

    async def ask(self, request: Any, answer: type[Any]) -> Any:
        if isinstance(request, m.Find):
            return m.Found(request.id, URI, request.document.version, [])
        self.searched.append(request.document.text)
        return m.Finished(request.id, URI, request.document.version, "done")

    def tell(self, message: object) -> None:
        return None


class SavedFile:
    """Made in a ClockLoop that runs."""

    def __init__(self) -> None:
        self._loop = cast(ClockLoop, asyncio.get_running_loop())
        self._keeper = _Keeper()
        self._tasks: set[asyncio.Task[None]] = set()
        regions = Regions(lambda uri, lasting: None)
        engines = cast(Engines, self)
        searches = Searches(regions, engines, lambda uri: self._analysis.source(uri), self._spawn)
        self._analysis = Analysis(regions, searches, Roots(), lambda _: Settings(), self._ready, self._spawn)
        self._version = 0

    @property
    def searched(self) -> list[str]:
        return self._keeper.searched

    def of(self, path: str) -> _Keeper:
        """As Engines has it."""
        return self._keeper

    async def open(self, text: str) -> None:
        document = types.TextDocumentItem(URI, "python", 0, text)
        self._analysis.documents.did_open(types.DidOpenTextDocumentParams(document))
        await self.at(self._loop.now)

    async def save(self, text: str) -> None:
        """Rewritten and saved."""
        self._version += 1
        identifier = types.VersionedTextDocumentIdentifier(self._version, URI)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self._analysis.documents.did_change(types.DidChangeTextDocumentParams(identifier, [whole]))
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(URI))
        self._analysis.documents.did_save(saved)
        await self.at(self._loop.now)

    async def at(self, seconds: float) -> None:
        """The clock shows so much, and all that is due by then is done."""
        self._loop.now = seconds
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            if not task.cancelled():
                task.result()

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        return task

    async def _ready(self) -> None:
        return None

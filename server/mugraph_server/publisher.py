"""Sends changes of region states to the client: gathered for a moment, and only what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from mugraph_server.client import Client
from mugraph_server.documents.source import Document, Source
from mugraph_server.log import logger
from mugraph_server.regions import FileState, Regions
from mugraph_server.searches import Spawn
from mugraph_server.views.diagnostics import diagnostics
from mugraph_server.views.progress import progress
from mugraph_server.views.search import digest

GATHER_S = 0.05
PROGRESS_AFTER_S = 0.4
"""Seconds before a bar is shown: a search that the store answers is over by then."""
PROGRESS_EVERY_S = 0.25
SHOWS_SEARCH = "mugraph.showGraph"
"""The client's command that opens a view of the search."""


class Publisher:
    """source: the one with that uri, while it is there. shows: whether its diagnostics are wanted. status: the status
    as it is now. is_open: whether the client has the source open, and would pull its diagnostics."""

    def __init__(
        self,
        client: Client,
        regions: Regions,
        source: Callable[[str], Source | None],
        is_open: Callable[[str], bool],
        shows: Callable[[Source], bool],
        status: Callable[[], dict[str, Any]],
        spawn: Spawn,
    ) -> None:
        self._client = client
        self._regions = regions
        self._source = source
        self._is_open = is_open
        self._shows = shows
        self._status = status
        self._spawn = spawn
        self._dirty: dict[str, bool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._pushed: dict[str, dict[str, list[types.Diagnostic]]] = {}
        self._said: dict[str, Any] | None = None
        self._bars: dict[str, _Bar] = {}
        self._searches: dict[str, object] = {}

    def changed(self, uri: str, lasting: bool) -> None:
        self._dirty[uri] = self._dirty.get(uri, False) or lasting
        self.soon()

    def soon(self) -> None:
        """The status may have changed."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self._flush)

    def all(self) -> None:
        """After a change of settings."""
        for file in self._regions.all():
            self.changed(file.uri, True)

    def _flush(self) -> None:
        self._timer = None
        dirty, self._dirty = self._dirty, {}
        for uri in dirty:
            try:
                self._push(uri)
                self._progress(uri)
                self._search(uri)
            except Exception:  # the other files' views must not wait for this one
                logger.exception("views could not be made")
        if any(dirty.values()):
            self._client.refresh()
        status = self._status()
        if status != self._said:
            self._said = status
            self._client.notify("mugraph/status", status)

    # --- diagnostics ----------------------------------------------------------------------------------------------

    def _push(self, uri: str) -> None:
        """Pushes diagnostics. A document that has none any more gets an empty list, and so does one that is gone."""
        source, file = self._source(uri), self._regions.get(uri)
        before = self._pushed.get(uri, {})
        now: dict[str, list[types.Diagnostic]] = {}
        if source is not None and file is not None and not (self._client.can.pulls and self._is_open(uri)):
            if file.unjudged:
                return  # soon
            for document in source.documents:
                now[document.uri] = self.diagnostics(source, document, file)
        versions = {document.uri: document.version for document in source.documents} if source is not None else {}
        for document_uri in before.keys() | now.keys():
            found = now.get(document_uri, [])
            if found != before.get(document_uri, []):
                version = versions.get(document_uri) if self._is_open(uri) else None
                self._client.publish(document_uri, version, found)
        kept = {document_uri: found for document_uri, found in now.items() if found}
        if kept:
            self._pushed[uri] = kept
        else:
            self._pushed.pop(uri, None)

    def diagnostics(self, source: Source, document: Document, file: FileState) -> list[types.Diagnostic]:
        if not self._shows(source):
            return []
        return diagnostics(source, document, file, self._client.can.related)

    # --- searches -------------------------------------------------------------------------------------------------

    def _search(self, uri: str) -> None:
        """`mugraph/searchChanged` {"uri"}: `mugraph/search` has another answer. For clients that show one."""
        file, source = self._regions.get(uri), self._source(uri)
        if file is None or source is None:
            self._searches.pop(uri, None)
            return
        now = digest(file)
        if now == self._searches.get(uri) or SHOWS_SEARCH not in self._client.can.commands:
            return
        self._searches[uri] = now
        for document in source.documents:
            self._client.notify("mugraph/searchChanged", {"uri": document.uri})

    # --- progress -------------------------------------------------------------------------------------------------

    def _progress(self, uri: str) -> None:
        file, source = self._regions.get(uri), self._source(uri)
        bar = self._bars.get(uri)
        if file is None or source is None or not file.searching:
            if bar is not None:
                del self._bars[uri]
                bar.end()
        elif bar is not None:
            bar.now = progress(file)
        elif self._client.can.progress:
            name = source.uri.rpartition("/")[2]
            bar = self._bars[uri] = _Bar(self._client, f"mugraph: {name}", progress(file))
            self._spawn(bar.run())

    def bar_of(self, token: str | int) -> str | None:
        """Uri of the source whose search has this bar."""
        return next((uri for uri, bar in self._bars.items() if bar.token == token), None)


class _Bar:
    """One progress bar. now: what it should say."""

    def __init__(self, client: Client, title: str, now: tuple[str, int | None]) -> None:
        self._client = client
        self._title = title
        self._over = asyncio.Event()
        self.now = now
        self.token: str | None = None

    async def run(self) -> None:
        if await self._wait(PROGRESS_AFTER_S):
            return
        self.token = await self._client.begin_progress(self._title)
        if self.token is None:
            return
        said: tuple[str, int | None] | None = None
        while not self._over.is_set():
            if self.now != said:
                said = self.now
                self._client.report_progress(self.token, *said)
            await self._wait(PROGRESS_EVERY_S)
        self._client.end_progress(self.token, "")

    def end(self) -> None:
        self._over.set()

    async def _wait(self, seconds: float) -> bool:
        """Waits at most so long; whether it is over."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return False
        return True

"""One client's session: what it has open, what is known of it, and the engines that find that out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from mugraph.protocol import messages as m
from mugraph.protocol.messages import FromEngine
from mugraph.protocol.settings import Settings
from pygls.uris import to_fs_path

from mugraph_server import log
from mugraph_server.abilities import read as read_abilities
from mugraph_server.analysis import Analysis
from mugraph_server.client import Client
from mugraph_server.client_settings import ClientSettings
from mugraph_server.configuration import read_options
from mugraph_server.documents.source import Source
from mugraph_server.engine.engines import Engines
from mugraph_server.engine.keeper import Keeper
from mugraph_server.engine.state import EngineStatus
from mugraph_server.inquiries import Form, Inquiries, Theme
from mugraph_server.log import logger
from mugraph_server.publisher import Publisher
from mugraph_server.regions import Regions
from mugraph_server.roots import Roots
from mugraph_server.searches import Searches
from mugraph_server.settings import looked_at_again
from mugraph_server.views.status import EngineView, status
from mugraph_server.watch import Watch


class Session:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.roots = Roots()
        self.given = ClientSettings(client, self.roots, self._wrong, self._settings_changed)
        self.configuration = self.given.configuration
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()
        self._troubles: set[str] = set()
        self._logged: tuple[object, ...] = ()
        self._watch: Watch | None = None
        self._stopping = False
        self.regions = Regions(self._changed)
        self.engines = Engines(self.roots, self.configuration.of, self._event, self._engine_changed)
        self.searches = Searches(self.regions, self.engines, self._source, self.spawn)
        self.analysis = Analysis(self.regions, self.searches, self.roots, self.settings, self.given.known, self.spawn)
        self.documents = self.analysis.documents
        self.inquiries = Inquiries(
            self.regions, self.engines, self.searches, self._is_current, self._drawn_as, self.spawn
        )
        self.publisher = Publisher(
            client,
            self.regions,
            self._source,
            lambda uri: self.documents.source(uri) is not None,
            lambda source: self.settings(source).diagnostics,
            self.status,
            self.spawn,
        )
        self.analysis.on_settled = self._settled
        self.analysis.on_open = self._opened
        self.analysis.on_close = self._closed

    # --- beginning and end ----------------------------------------------------------------------------------------

    def begin(self, params: types.InitializeParams) -> None:
        options, given = read_options(params.initialization_options)
        self.client.can = read_abilities(params.capabilities, given)
        self.given.begin(options)
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        self.roots.set(_paths(folders))
        log.set_level(self.configuration.default.log_level)

    def begun(self) -> None:
        """The client is ready for questions."""
        can = self.client.can
        if can.configuration and can.registers_configuration:
            options = types.DidChangeConfigurationRegistrationOptions(section="mugraph")
            self.spawn(self.client.register(types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
        self.spawn(self.given.first())
        self.publisher.soon()

    async def stop(self) -> None:
        self._stopping = True
        if self._watch is not None:
            self._watch.stop()
        await self.engines.stop()

    def kill_now(self) -> None:
        self.engines.kill_now()

    # --- settings -------------------------------------------------------------------------------------------------

    def settings(self, source: Source) -> Settings:
        return self.configuration.of(self.roots.of(source.path))

    def set_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        gone = set(_paths([folder.uri for folder in event.removed]))
        added = _paths([folder.uri for folder in event.added])
        self.roots.set([root for root in self.roots.folders if root not in gone] + added)
        self.spawn(self._folders_changed(gone))

    async def _folders_changed(self, gone: set[Path]) -> None:
        await self.engines.retire([k.root for k in self.engines.keepers if k.root in gone])
        if self.client.can.configuration:
            await self.given.pull()

    async def _settings_changed(self, before: list[Settings], now: list[Settings]) -> None:
        """What has changed counts from now on, without a restart."""
        log.set_level(self.configuration.default.log_level)
        if not any(settings.enable and settings.trusted for settings in now):
            self.analysis.stop_all()
            await self.engines.retire([keeper.root for keeper in self.engines.keepers])
        else:
            moved = self.engines.moved()
            if moved:
                self.searches.abandon_all()
                await self.engines.retire(moved)
            for sentence in await self.engines.configure():
                self._say(sentence, types.MessageType.Warning)
            if moved or [looked_at_again(s) for s in now] != [looked_at_again(s) for s in before]:
                self.analysis.again_all()
        if [settings.theme for settings in now] != [settings.theme for settings in before]:
            self._draw_again()
        self.publisher.all()
        self.publisher.soon()

    def _draw_again(self) -> None:
        """Draws what was found in the colours of now, before a hover asks for it."""
        for file in self.regions.all():
            source = self._source(file.uri)
            for mark in file.marks if source is not None else ():
                if source is not None and mark.result is not None and mark.result.status == "improved":
                    self.inquiries.improved(source, mark.result)

    def _wrong(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._say(sentence, types.MessageType.Warning)

    # --- engines --------------------------------------------------------------------------------------------------

    def _event(self, message: FromEngine) -> None:
        if isinstance(message, m.Notice):
            self._say(message.message, types.MessageType.Warning)
            return
        self.searches.event(message)
        if isinstance(message, m.RegionChanged | m.Found):
            source = self._source(message.uri)
            found = message.regions if isinstance(message, m.Found) else [message.region]
            for region in found:
                if source is not None and region.status == "improved":
                    self.inquiries.improved(source, region)

    def _engine_changed(self, keeper: Keeper, now: EngineStatus) -> None:
        if (keeper.root, now.state, now.message) != self._logged:
            self._logged = keeper.root, now.state, now.message
            logger.info("engine in %s: %s %s", keeper.root.name, now.state, now.message)
        if now.state == "errored" and not self._stopping:
            self._troubles.add(now.message)
            self._say(now.message, types.MessageType.Error)
        if now.state == "running":
            self._told -= self._troubles  # the same trouble after a time that was good is news
        self.publisher.soon()

    async def restart_engines(self) -> None:
        self.searches.abandon_all()
        self._told -= self._troubles
        await self.engines.restart()
        self.analysis.again_all()

    def status(self) -> dict[str, Any]:
        engines = [EngineView(str(keeper.root), keeper.status, keeper.target) for keeper in self.engines.keepers]
        settings = self.given.all()
        enabled = any(one.enable for one in settings)
        return status(self.regions.all(), engines, enabled, self.configuration.default.trusted)

    # --- sources --------------------------------------------------------------------------------------------------

    def _source(self, uri: str) -> Source | None:
        return self.analysis.source(uri)

    def _is_current(self, source: Source) -> bool:
        return self._source(source.uri) is source

    def _opened(self, source: Source) -> None:
        if source.kind != "untitled":
            if self._watch is None:
                self._watch = Watch(self.analysis.outside)
            self._watch.add(source.path)

    def _closed(self, source: Source) -> None:
        if source.kind != "untitled" and self._watch is not None:
            self._watch.remove(source.path)

    def _settled(self, source: Source) -> None:
        settings = self.settings(source)
        if settings.enable and settings.trusted:
            self.inquiries.settled(source)

    def _changed(self, uri: str, lasting: bool) -> None:
        if not self._stopping:
            self.publisher.changed(uri, lasting)

    def _drawn_as(self) -> tuple[Form, Theme]:
        return ("overview" if self.client.can.images else "text"), self.configuration.default.theme

    # --- small things ---------------------------------------------------------------------------------------------

    def _say(self, sentence: str, kind: types.MessageType) -> None:
        """Once."""
        if sentence not in self._told:
            self._told.add(sentence)
            self.client.show(f"mugraph: {sentence}", kind)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("something failed in the background", exc_info=error)


def _paths(uris: Sequence[str]) -> list[Path]:
    return [Path(path) for uri in uris if (path := to_fs_path(uri)) is not None]

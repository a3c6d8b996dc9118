"""The settings that the client has: asked for, or pushed by it, at the start and after each change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mugraph.protocol.settings import Settings
from pygls.uris import from_fs_path

from mugraph_server.client import Client
from mugraph_server.configuration import Configuration, Options
from mugraph_server.log import logger
from mugraph_server.roots import Roots

CONFIGURED_S = 3.0
"""Seconds that a client may take to answer what its configuration is. After that the defaults count until it
answers."""


class ClientSettings:
    """configuration: the settings as they are now."""

    def __init__(
        self,
        client: Client,
        roots: Roots,
        wrong: Callable[[Sequence[str]], None],
        changed: Callable[[list[Settings], list[Settings]], Awaitable[None]],
    ) -> None:
        """wrong:   called with a sentence about each value that is not allowed
        changed: called with all settings before and all settings now, if they differ"""
        self.configuration = Configuration()
        self._client = client
        self._roots = roots
        self._wrong = wrong
        self._changed = changed
        self._options: object = None
        self._configured = asyncio.Event()

    def begin(self, options: Options) -> None:
        """Takes the settings that the client sent with `initialize`, before it can be asked for its configuration."""
        self._options = options.settings
        self._wrong(self.configuration.begin(options))

    async def first(self) -> None:
        """Asks for the configuration, once the client can answer. An answer that comes late still counts."""
        if not self._client.can.configuration:
            self._configured.set()
            return
        asked = asyncio.ensure_future(self.pull())
        await asyncio.wait({asked}, timeout=CONFIGURED_S)
        if not asked.done():
            logger.warning("the client has not said its configuration yet; the defaults count until it does")
        self._configured.set()
        await asked

    async def known(self) -> None:
        """Waits until the settings are known."""
        await self._configured.wait()

    async def pull(self) -> None:
        roots = self._roots.folders
        answers = await self._client.configuration([None, *(from_fs_path(str(root)) for root in roots)])
        default = answers[0] or self._options
        by_root = {root: given or self._options for root, given in zip(roots, answers[1:], strict=True)}
        await self._take(default, by_root)

    async def push(self, given: object) -> None:
        """Settings from a client that cannot be asked: all of its settings, or only the section `mugraph`."""
        if self._client.can.configuration:
            await self.pull()
            return
        settings = cast("dict[str, object]", given) if isinstance(given, dict) else {}
        section = settings.get("mugraph", settings)
        if section:
            self._options = section
            await self._take(section, {})

    async def set_state(self, **changes: Any) -> None:
        """Changes `trusted` or `theme`."""
        before = self.all()
        self.configuration.set(**changes)
        await self._compare(before)

    def all(self) -> list[Settings]:
        """The default settings, then those of each root."""
        return [self.configuration.default, *(self.configuration.of(root) for root in self._roots.folders)]

    async def _take(self, default: object, by_root: Mapping[Path, object]) -> None:
        before = self.all()
        self._wrong(self.configuration.take(default, by_root))
        await self._compare(before)

    async def _compare(self, before: list[Settings]) -> None:
        now = self.all()
        if now != before:
            await self._changed(before, now)

"""All engines: one for each workspace root, all started by the same command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from mugraph.protocol.messages import FromEngine
from mugraph.protocol.values import Settings as EngineSettings

from mugraph_server.engine.command import Command, choose
from mugraph_server.engine.keeper import Keeper
from mugraph_server.engine.state import EngineRefused, EngineStatus
from mugraph_server.settings import Settings


class Engines:
    """event: what an engine says; changed: some engine's status is another now; refused: a sentence about a setting."""

    def __init__(
        self,
        event: Callable[[FromEngine], None],
        changed: Callable[[Keeper, EngineStatus], None],
        refused: Callable[[str], None],
    ) -> None:
        self._event = event
        self._changed = changed
        self._refused = refused
        self._roots: list[Path] = []
        self._keepers: dict[Path, Keeper] = {}
        self._command: Command = choose(Settings())
        self._settings = EngineSettings()

    @property
    def keepers(self) -> list[Keeper]:
        return list(self._keepers.values())

    @property
    def command(self) -> Command:
        return self._command

    def set_roots(self, roots: Sequence[Path]) -> None:
        """Before anything is asked, or when folders come; an engine of a folder that left stays until the end."""
        self._roots = list(dict.fromkeys(roots))

    def first_root(self) -> Path:
        return self._roots[0] if self._roots else Path.cwd()

    def root_of(self, path: str) -> Path:
        """The innermost root around it, else its own folder."""
        around = [root for root in self._roots if Path(path).is_relative_to(root)]
        if around:
            return max(around, key=lambda root: len(root.parts))
        return self._roots[0] if self._roots else Path(path).parent

    def of(self, path: str) -> Keeper:
        root = self.root_of(path)
        keeper = self._keepers.get(root)
        if keeper is None:

            def changed(status: EngineStatus) -> None:
                self._changed(self._keepers[root], status)

            keeper = Keeper(root, self._command, self._settings, self._event, changed)
            self._keepers[root] = keeper
        return keeper

    async def configure(self, settings: Settings) -> bool:
        """True if the command is another now: all engines have been stopped, and start again when they are needed."""
        command = choose(settings)
        self._settings = EngineSettings(settings.target, settings.budget_s, settings.measure)
        if command != self._command:
            self._command = command
            gone, self._keepers = self._keepers, {}
            await asyncio.gather(*(keeper.stop() for keeper in gone.values()))
            return True
        for keeper in self.keepers:
            try:
                await keeper.configure(self._settings)
            except EngineRefused as error:
                self._refused(str(error))
            except Exception:
                continue  # it died; its successor begins with the new settings
        return False

    async def restart(self) -> None:
        await asyncio.gather(*(keeper.restart() for keeper in self.keepers))

    async def stop(self) -> None:
        await asyncio.gather(*(keeper.stop() for keeper in self.keepers), return_exceptions=True)

    def kill_now(self) -> None:
        for keeper in self.keepers:
            keeper.kill_now()

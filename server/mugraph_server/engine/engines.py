"""All engines: one for each workspace root, started in the environment that root is set to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from mugraph.protocol.messages import FromEngine
from mugraph.protocol.settings import Settings

from mugraph_server.engine.command import choose
from mugraph_server.engine.keeper import Keeper, Patience
from mugraph_server.engine.state import EngineGone, EngineRefused, EngineStatus
from mugraph_server.log import logger
from mugraph_server.roots import Roots
from mugraph_server.settings import to_engine


class Engines:
    """settings: gives those of a root. event: called with what an engine says. changed: called when an engine's status
    changes."""

    def __init__(
        self,
        roots: Roots,
        settings: Callable[[Path], Settings],
        event: Callable[[FromEngine], None],
        changed: Callable[[Keeper, EngineStatus], None],
        patience: Patience | None = None,
    ) -> None:
        self._roots = roots
        self._settings = settings
        self._event = event
        self._changed = changed
        self._patience = patience
        self._keepers: dict[Path, Keeper] = {}

    @property
    def keepers(self) -> list[Keeper]:
        return list(self._keepers.values())

    def of(self, path: str) -> Keeper:
        root = self._roots.of(path)
        if root not in self._keepers:
            settings = self._settings(root)
            keeper = Keeper(root, choose(settings), to_engine(settings), self._event, self._changed, self._patience)
            self._keepers[root] = keeper
        return self._keepers[root]

    def moved(self) -> list[Path]:
        """Roots whose engine would now be started by another command."""
        return [root for root, keeper in self._keepers.items() if choose(self._settings(root)) != keeper.command]

    async def retire(self, roots: Iterable[Path]) -> None:
        """Stops the engines of these roots. Others are started when they are needed."""
        gone = [self._keepers.pop(root) for root in roots]
        await asyncio.gather(*(keeper.stop() for keeper in gone))

    async def configure(self) -> list[str]:
        """Tells every engine its settings; sentences about those that an engine refused."""
        refused: list[str] = []
        for root, keeper in list(self._keepers.items()):
            try:
                await keeper.configure(to_engine(self._settings(root)))
            except EngineRefused as error:
                refused.append(str(error))
            except EngineGone as gone:  # its successor begins with the new settings
                logger.debug("the engine of %s is not configured: %s", root, gone)
        return refused

    async def restart(self) -> None:
        """Stops all engines, so that the next start uses the environment that is chosen now."""
        await self.retire(self.moved())
        await asyncio.gather(*(keeper.restart() for keeper in self.keepers))

    async def stop(self) -> None:
        await asyncio.gather(*(keeper.stop() for keeper in self.keepers), return_exceptions=True)

    def kill_now(self) -> None:
        for keeper in self.keepers:
            keeper.kill_now()

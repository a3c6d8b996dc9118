"""Keeps one engine running for one workspace root: starts it when it is needed, and again when it dies, a few times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from mugraph.protocol import messages as m
from mugraph.protocol.messages import FromEngine, ToEngine
from mugraph.protocol.settings import EngineSettings

from mugraph_server.engine.client import EngineClient, ids
from mugraph_server.engine.command import Command, explain
from mugraph_server.engine.state import EngineGone, EngineRefused, EngineStatus
from mugraph_server.log import logger

A = TypeVar("A")


@dataclass(frozen=True)
class Patience:
    """In seconds. start: until an engine must be ready (it imports torch, perhaps over a network's file system).
    answer: until one that is asked something must answer a ping. back_off: before each start after a crash."""

    start: float = 90.0
    ping_every: float = 5.0
    answer: float = 10.0
    back_off: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    crashes: int = 5
    within: float = 180.0


class Keeper:
    """event: called with what the engine says beside answers. changed: called with every new status.
    generation: changes with every engine, and again when one ends: an engine knows nothing of what an earlier one
                found.
    """

    def __init__(
        self,
        root: Path,
        command: Command,
        settings: EngineSettings,
        event: Callable[[FromEngine], None],
        changed: Callable[[Keeper, EngineStatus], None],
        patience: Patience | None = None,
    ) -> None:
        self.root = root
        self.command = command
        self.status = EngineStatus("exited", command=command.name)
        self._settings = settings
        self._event = event
        self._changed = changed
        self._patience = patience or Patience()
        self._client: EngineClient | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._watched: EngineClient | None = None
        self._crashed: list[float] = []
        self._closed = False
        self._ending = asyncio.Lock()  # while one engine ends, another restart must not begin the next beside it
        self.generation = 0

    # --- what the server asks ---------------------------------------------------------------------------------------

    async def ask(self, message: ToEngine, answer: type[A]) -> A:
        """Asks the engine, which is started if need be. Raises EngineGone, EngineRefused."""
        client = await self._running()
        if self._watching is None or self._watching.done() or self._watched is not client:
            if self._watching is not None:
                self._watching.cancel()
            self._watched = client
            self._watching = asyncio.create_task(self._watch(client))
        return await client.ask(message, answer)

    def tell(self, message: ToEngine) -> None:
        """Tells a running engine something. If none runs there is nothing to tell."""
        if self._client is not None and self.status.state == "running":
            self._client.tell(message)

    @property
    def target(self) -> str:
        """The target that kernels are made for; "" while it is not known."""
        return self.status.target if self._settings.target == "auto" else self._settings.target

    async def configure(self, settings: EngineSettings) -> None:
        """Sends the settings. Raises EngineRefused for a value that the engine does not take."""
        if settings == self._settings:
            return
        self._settings = settings
        if self._client is not None and self.status.state == "running":
            await self._client.ask(m.Configure(next(ids), settings), m.Configured)

    async def restart(self) -> None:
        """Restarts the engine because the user asked for it; earlier crashes no longer count."""
        async with self._ending:
            await self._halt()
            self._crashed.clear()
            self._closed = False
            self._say(EngineStatus("exited", command=self.command.name, restarts=self.status.restarts))
            self._begin("starting", 0.0)

    async def stop(self) -> None:
        self._closed = True
        async with self._ending:
            self._closed = True
            await self._halt()
            if self.status.state != "errored":
                self._say(replace(self.status, state="exited", pid=None))

    def kill_now(self) -> None:
        if self._client is not None:
            self._client.kill_now()

    # --- its life -------------------------------------------------------------------------------------------------

    async def _running(self) -> EngineClient:
        if self._client is not None:
            await self._client.buried()  # what comes next is decided when it is known how it ended
        async with self._ending:
            pass  # a restart under way: who asks meanwhile is served by the engine that it begins
        if self._closed:
            raise EngineGone("the engine was stopped")
        if self.status.state == "errored":
            raise EngineGone(self.status.message)
        if self.status.state == "exited":
            self._begin("starting", 0.0)
        if self._starting is not None:
            await asyncio.wait({self._starting})  # its being cancelled (a restart) is not our being cancelled
        if self._client is None or self.status.state != "running":
            raise EngineGone(self.status.message or "the engine was stopped")
        return self._client

    def _begin(self, state: str, delay: float) -> None:
        restarting = state == "restarting"
        status = replace(self.status, state="restarting" if restarting else "starting", pid=None)
        self._say(replace(status, restarts=status.restarts + restarting))
        self._starting = asyncio.create_task(self._start(delay))

    async def _start(self, delay: float) -> None:
        """Returns when the engine runs or has failed; starts it again where that may help."""
        while True:
            await asyncio.sleep(delay)
            missing = self.command.missing()
            if missing is not None:
                self._give_up(missing)
                return
            settings = self._settings
            try:
                self._client, ready = await EngineClient.start(
                    self.command,
                    self.root,
                    settings,
                    self._event,
                    self._ended,
                    self._patience.start,
                    self._started,
                )
            except (EngineGone, EngineRefused) as error:
                client, self._client = self._client, None
                words = list(client.process.last_words) if client is not None else []
                why = explain(words, self.command)
                if why is not None or isinstance(error, EngineRefused):
                    self._give_up(why or f"the engine {self.command.name}: {error}")
                    return
                last = client.process.words() if client is not None else ""
                again = self._count(f"{error}{': ' + last if last else ''}")
                if again is None:
                    return
                delay = again
                continue
            break
        if ready.problems:
            sentence = f"the engine's Python {ready.python} cannot be used: {'; '.join(ready.problems)}"
            client, self._client = self._client, None
            await client.stop()
            self._give_up(sentence)
            return
        self.generation += 1
        status = replace(self.status, state="running", message="", python=ready.python)
        status = replace(status, device=ready.device.name, target=ready.device.target)
        self._say(replace(status, versions=tuple(ready.versions.items())))
        if settings != self._settings:  # they were changed while it started
            try:
                await self._client.ask(m.Configure(next(ids), self._settings), m.Configured)
            except (EngineGone, EngineRefused) as error:
                logger.warning("the engine %s works with earlier settings: %s", self.command.name, error)

    def _started(self, client: EngineClient) -> None:
        self._client = client
        self._say(replace(self.status, pid=client.process.pid))

    def _ended(self, how: str) -> None:
        """The engine ended, and we did not stop it. If it was starting, `_start` notices that too, and counts it."""
        if self._closed or self.status.state in ("starting", "restarting"):
            return
        logger.warning("the engine %s ended: %s", self.command.name, how)
        self._client = None
        self.generation += 1
        delay = self._count(how)
        if delay is not None:
            self._begin("restarting", delay)

    def _count(self, how: str) -> float | None:
        """Counts a crash. The answer is the delay before the next start; None if this crash was one too many."""
        now = time.monotonic()
        self._crashed = [at for at in self._crashed if now - at < self._patience.within] + [now]
        crashes = (*self.status.crashes, how)[-self._patience.crashes :]
        self.status = replace(self.status, crashes=crashes, pid=None)
        count = len(self._crashed)
        if count >= self._patience.crashes:
            self._give_up(f"the engine {self.command.name} ended {count} times in a short while, last: {how}")
            return None
        return self._patience.back_off[min(count, len(self._patience.back_off)) - 1]

    def _give_up(self, sentence: str) -> None:
        logger.error("%s", sentence)
        self._say(replace(self.status, state="errored", message=sentence, pid=None))

    def _say(self, status: EngineStatus) -> None:
        self.status = status
        self._changed(self, status)

    async def _halt(self) -> None:
        tasks = [task for task in (self._starting, self._watching) if task is not None and not task.done()]
        self._starting = self._watching = self._watched = None
        self.generation += 1
        client, self._client = self._client, None
        for task in tasks:
            task.cancel()
        if client is not None:
            await client.stop()
        if tasks:
            await asyncio.wait(tasks)

    async def _watch(self, client: EngineClient) -> None:
        """While a request is open: an engine that does not answer a ping will not answer the request either, and is
        ended."""
        while client.waits and client is self._client:
            await asyncio.sleep(self._patience.ping_every)
            if not client.waits or client is not self._client:
                return
            try:
                await asyncio.wait_for(client.ask(m.Ping(next(ids)), m.Pong), self._patience.answer)
            except TimeoutError:
                logger.error("the engine has not answered for %g s; it is ended", self._patience.answer)
                client.process.kill_now()  # its end is then seen as any other crash
                return
            except (EngineGone, EngineRefused) as error:  # who waits for the request is told
                logger.debug("the engine %s is no longer watched: %s", self.command.name, error)
                return

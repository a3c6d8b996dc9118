"""A conversation with one engine process: requests and their answers, events, and the end of it all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from mugraph.protocol import Decoder, Unreadable, encode
from mugraph.protocol import messages as m
from mugraph.protocol.messages import FromEngine, ToEngine
from mugraph.protocol.settings import EngineSettings

from mugraph_server.engine.command import Command
from mugraph_server.engine.process import EngineProcess
from mugraph_server.engine.state import EngineGone, EngineRefused
from mugraph_server.log import logger

A = TypeVar("A")

EVENTS = m.Found | m.RegionChanged | m.Progress | m.FirstHit | m.BetterHit | m.AnotherHit
"""Events that come before a search's answer."""

ids = itertools.count(1)
"""Numbers of requests. None is used twice: an answer of a dead engine must not count for its successor."""


class EngineClient:
    """event: called with every message that answers no request. ended: called once, with a sentence, if the engine ends
    by itself."""

    def __init__(
        self, process: EngineProcess, event: Callable[[FromEngine], None], ended: Callable[[str], None]
    ) -> None:
        self.process = process
        self._event = event
        self._ended = ended
        self._open: dict[int, tuple[asyncio.Future[FromEngine], type[object]]] = {}
        self._stopping = False
        self._over = False
        self._strays = 0
        self._reader = asyncio.create_task(self._read())

    @staticmethod
    async def start(
        command: Command,
        root: Path,
        settings: EngineSettings,
        event: Callable[[FromEngine], None],
        ended: Callable[[str], None],
        patience_s: float,
        started: Callable[[EngineClient], None],
    ) -> tuple[EngineClient, m.Ready]:
        """Raises EngineGone or EngineRefused; the process is gone then."""
        try:
            process = await EngineProcess.start(command, root)
        except (OSError, ValueError) as error:
            raise EngineGone(f"the engine {command.name} ({command.chosen_by}) cannot be started: {error}") from None
        client = EngineClient(process, event, ended)
        started(client)
        try:
            hello = m.Hello(next(ids), client="mugraph server", root=str(root), settings=settings)
            ready = await asyncio.wait_for(client.ask(hello, m.Ready), patience_s)
        except TimeoutError:
            await client.stop()
            raise EngineGone(f"the engine {command.name} was not ready after {patience_s:g} s") from None
        except BaseException:
            await client.stop()
            raise
        return client, ready

    @property
    def waits(self) -> bool:
        """Whether any request is open."""
        return bool(self._open)

    async def buried(self) -> None:
        """Waits, if the engine has died, until `ended` was called. Returns at once while it lives."""
        if self._over:
            await asyncio.wait({self._reader})

    def tell(self, message: ToEngine) -> None:
        if not self._stopping:
            self.process.write(encode(message))

    async def ask(self, message: ToEngine, answer: type[A]) -> A:
        """Sends a request and waits for its answer. If the wait is cancelled, the engine is told, so that it stops
        working on it. Raises EngineGone, EngineRefused."""
        identity = getattr(message, "id", None)
        assert isinstance(identity, int)
        if self._stopping or self._over:
            raise EngineGone("the engine has ended")
        future: asyncio.Future[FromEngine] = asyncio.get_running_loop().create_future()
        self._open[identity] = future, answer
        self.tell(message)
        try:
            found = await future
        except asyncio.CancelledError:
            self.tell(m.Cancel(identity))
            raise
        finally:
            self._open.pop(identity, None)
        if isinstance(found, m.Failed):
            raise EngineRefused(found.message)
        if not isinstance(found, answer):
            raise EngineRefused(f"the engine answered {type(message).__name__} with {type(found).__name__}")
        return found

    async def stop(self) -> None:
        """Open requests fail with EngineGone."""
        self._stopping = True
        self._fail("the engine was stopped")
        await self.process.stop(encode(m.Exit()))
        self._reader.cancel()

    def kill_now(self) -> None:
        self._stopping = True
        self.process.kill_now()

    async def _read(self) -> None:
        decoder = cast("Decoder[FromEngine]", Decoder(FromEngine))  # pyright: ignore # a union is no type
        sentence = ""
        try:
            while data := await self.process.read():
                for message in decoder.feed(data):
                    self._take(message)
        except OSError as error:
            sentence = f"its output cannot be read: {error}"
        except asyncio.CancelledError:  # `stop` has said what there is to say
            return
        except Exception:
            logger.exception("a message of the engine could not be handled")
            sentence = "the server could not handle one of its messages"
        # Its output has ended, so nothing it was asked will be answered: say so before waiting for the process itself.
        self._fail(f"the engine ended{': ' + sentence if sentence else ''}")
        if self._stopping:
            return
        await self.process.stop(encode(m.Exit()))
        status = self.process.status
        words = self.process.words()
        how = sentence or _how(status)
        self._ended(f"{how}{': ' + words if words else ''}")

    def _take(self, message: FromEngine | Unreadable) -> None:
        if isinstance(message, Unreadable):
            self._unreadable(message)
        elif isinstance(message, m.Log):
            logger.log(_LEVELS[message.level], "engine: %s", message.message)
        elif isinstance(message, m.Notice):
            self._event(message)
        elif isinstance(message, m.Failed) or not isinstance(message, EVENTS):
            self._answer(message.id, message)
        else:
            self._event(message)
            asked = self._open.get(message.id)
            if asked is not None and isinstance(message, asked[1]):  # Found answers Find, and only begins a Search
                self._answer(message.id, message)

    def _answer(self, identity: int | None, message: FromEngine) -> None:
        asked = self._open.get(identity) if identity is not None else None
        if asked is not None and not asked[0].done():
            asked[0].set_result(message)

    def _unreadable(self, line: Unreadable) -> None:
        """Output that is no message does not end the conversation. If it seems to answer a request, that request
        fails."""
        self._strays += 1
        if self._strays <= 20:  # a print in a loop must not fill the log
            logger.warning("engine: %s: %r", line.sentence, line.text[:80])
        self._answer(line.id, m.Failed(line.id, "the engine's answer could not be read"))

    def _fail(self, sentence: str) -> None:
        self._over = True
        for future, _ in self._open.values():
            if not future.done():
                future.set_exception(EngineGone(sentence))


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def _how(status: int | None) -> str:
    if status is None:
        return "it closed its output"
    if status < 0:
        return "it was killed, perhaps for memory" if status == -9 else f"it died of signal {-status}"
    return f"it ended with status {status}"

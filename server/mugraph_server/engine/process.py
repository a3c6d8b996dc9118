"""One engine process: started in a group of its own, its standard error drained, and ended with all its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import psutil
from mugraph.protocol.temporary import VARIABLE as TEMPORARY

from mugraph_server.engine.command import Command
from mugraph_server.log import logger

_CHUNK = 1 << 16
_BUFFER = 1 << 20
_LINE = 400
_LATE_S = 0.05
"""Seconds in which its last output is read after its end."""
ASKED_S, TERMINATED_S = 0.5, 0.4
"""Seconds it may take to end after it was asked to exit, and after SIGTERM."""


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """asyncio's `wait` also waits for the pipes, and a process that the engine started may hold those open for ever."""

    def __init__(self) -> None:
        super().__init__(_BUFFER, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class EngineProcess:
    """last_words: the end of its standard error."""

    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams, temporary: str) -> None:
        self._temporary = temporary
        self._transport = transport
        self._streams = streams
        self._process = asyncio.subprocess.Process(transport, streams, asyncio.get_running_loop())
        self._pid = transport.get_pid()
        self.last_words: deque[str] = deque(maxlen=20)
        self._drain = asyncio.create_task(self._read_errors())
        self._farewell = asyncio.create_task(self._close_output())
        self._ending: asyncio.Task[None] | None = None

    @staticmethod
    async def start(command: Command, folder: Path) -> EngineProcess:
        """Raises OSError."""
        pipe = asyncio.subprocess.PIPE
        temporary = os.path.join(tempfile.gettempdir(), f"mugraph-engine-{uuid4().hex}")
        transport, streams = await asyncio.get_running_loop().subprocess_exec(
            _Streams,
            *command.arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=folder if folder.is_dir() else None,
            start_new_session=True,  # a group of its own: an interrupt in the terminal is ours, and killpg reaches all
            env=os.environ | {"PYTHONUNBUFFERED": "1", TEMPORARY: temporary},
        )
        return EngineProcess(transport, streams, temporary)

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def status(self) -> int | None:
        return self._transport.get_returncode()

    async def read(self) -> bytes:
        """b"" at the end."""
        assert self._process.stdout is not None
        return await self._process.stdout.read(_CHUNK)

    def write(self, data: bytes) -> None:
        """Never waits. What the engine has not read yet is held in memory."""
        stream = self._process.stdin
        if stream is not None and not stream.is_closing():
            stream.write(data)

    def words(self) -> str:
        return next((line for line in reversed(self.last_words) if line.strip()), "")

    async def stop(self, farewell: bytes) -> None:
        """Asks, waits, terminates, waits, kills; then kills what it started. May be called twice. Nothing is left after
        it."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(farewell))
        await asyncio.shield(self._ending)

    async def _end(self, farewell: bytes) -> None:
        family = self._descendants()
        stream = self._process.stdin
        if stream is not None:
            with contextlib.suppress(OSError):  # it has ended
                self.write(farewell)
                stream.close()
        if not await self._gone(ASKED_S):
            self._signal(signal.SIGTERM)
            family |= self._descendants()
            if not await self._gone(TERMINATED_S):
                self._signal(signal.SIGKILL)
                await self._gone(1.0)
        self.kill_family(family)
        await asyncio.wait({self._drain}, timeout=0.2)  # its last words may still be in the pipe
        self._drain.cancel()
        self._farewell.cancel()
        self._transport.close()

    def kill_now(self) -> None:
        """Kills it without waiting, when the server itself is about to end."""
        family = self._descendants()
        self._signal(signal.SIGKILL)
        self.kill_family(family)

    def kill_family(self, family: Iterable[psutil.Process] = ()) -> None:
        """Kills its process group, even if the process itself is dead, and children that have left the group; removes
        their temporary files."""
        self._signal(signal.SIGKILL)
        for child in family:
            with contextlib.suppress(psutil.Error):
                child.kill()  # psutil compares the time of birth: a reused id is not hit
        shutil.rmtree(self._temporary, ignore_errors=True)  # nothing, if the engine has done so or is elsewhere

    def _descendants(self) -> set[psutil.Process]:
        try:
            return set(psutil.Process(self.pid).children(recursive=True))
        except psutil.Error as error:  # it has ended
            logger.debug("the children of engine %d are not known: %s", self.pid, error)
            return set()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all of the group has ended
            os.killpg(self.pid, number)

    async def _gone(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._streams.exited.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _close_output(self) -> None:
        """Closes its output once it is dead, even if another process still holds the other end of the pipe."""
        await self._streams.exited.wait()
        await asyncio.sleep(_LATE_S)
        output = self._transport.get_pipe_transport(1)
        if output is not None:
            output.close()

    async def _read_errors(self) -> None:
        """In chunks: lines may lack their ends, and a full pipe stops the engine."""
        stream = self._process.stderr
        assert stream is not None
        rest = ""
        while data := await stream.read(_CHUNK):
            *lines, rest = (rest + data.decode(errors="replace")).split("\n")
            for line in lines[-self.last_words.maxlen :] if self.last_words.maxlen else lines:
                self._keep(line)
            if len(rest) > _LINE:
                self._keep(rest)
                rest = ""
        if rest.strip():
            self._keep(rest)

    def _keep(self, line: str) -> None:
        if line.strip():
            self.last_words.append(line[:_LINE])
            logger.debug("engine %d: %s", self.pid, line[:_LINE])

"""How messages come and go: over standard input and output, or over one TCP connection.

pygls's own loops lose the exit status, share the reader with its thread pool and stop answering at the first message
they cannot read; this one hands every body to `MugraphProtocol.receive` and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable

from mugraph_server.framing import Framing
from mugraph_server.log import logger
from mugraph_server.protocol import MugraphProtocol

_CHUNK = 1 << 16


class PipeWriter:
    """pygls's idea of a writer, over a file descriptor that only this object knows.

    A reader that has gone away is said once and never raised: what is still to be done must not depend on it.
    """

    def __init__(self, descriptor: int, lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._broken = False

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._broken:
            try:
                view = view[os.write(self._descriptor, view) :]
            except OSError as error:  # the editor has gone
                logger.debug("standard output cannot be written: %s", error)
                self._broken = True
                self._lost()

    def close(self) -> None:
        self._broken = True


class _SocketWriter:
    """The same over a connection."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        if not self._stream.is_closing():
            self._stream.write(data)

    def close(self) -> None:
        self._stream.close()


async def serve_stdio(protocol: MugraphProtocol, output: int) -> None:
    """Until the input ends or the protocol is done. output: a descriptor nobody else writes to."""
    loop = asyncio.get_running_loop()
    protocol.set_writer(PipeWriter(output, protocol.lost))
    framing = Framing()

    def arrived(data: bytes) -> None:
        if data:
            for body in framing.feed(data):
                protocol.receive(body)
        else:
            protocol.lost()

    def read() -> None:
        source = sys.stdin.fileno()
        data = b"-"
        while data:
            try:
                data = os.read(source, _CHUNK)
            except OSError as error:  # an end like any other
                logger.debug("standard input cannot be read: %s", error)
                data = b""
            try:
                loop.call_soon_threadsafe(arrived, data)
            except RuntimeError:  # the loop has ended, and the server with it
                return

    # A thread rather than a loop's reader: standard input may be a file or a terminal. A daemon: it cannot be woken.
    threading.Thread(target=read, name="standard input", daemon=True).start()
    await protocol.done.wait()


async def serve_tcp(protocol: MugraphProtocol, port: int, host: str = "127.0.0.1") -> None:
    """One client, then the end. The port that was taken is said on standard error: 0 lets the system choose."""
    taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        if taken:
            writer.close()
            return
        taken = True
        protocol.set_writer(_SocketWriter(writer))
        framing = Framing()
        try:
            while data := await reader.read(_CHUNK):
                for body in framing.feed(data):
                    protocol.receive(body)
        except OSError as error:
            logger.info("the connection was lost: %s", error)
        protocol.lost()

    server = await asyncio.start_server(connected, host, port)
    print(f"mugraph server: listening on {host}:{server.sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
    await protocol.done.wait()
    server.close()

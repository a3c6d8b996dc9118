"""The server as a process: how it begins, and that it ends, whatever is going on in it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence

from mugraph_server import log, parent
from mugraph_server.log import logger


def main(arguments: Sequence[str]) -> int:
    """Serves, and then ends the process with every thread in it; it does not return. Exit status 2 for wrong usage."""
    parser = argparse.ArgumentParser("mugraph server", description="The language server.", allow_abbrev=False)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--stdio", action="store_true", help="speak on standard input and output")
    way.add_argument("--tcp", type=int, metavar="PORT", help="wait for one client on this port; 0 chooses a free one")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as error:
        return 2 if error.code else 0
    output = claim_output() if given.stdio else None
    log.start()
    try:
        status = asyncio.run(serve(output, given.tcp, given.host))
    except OSError as error:
        print(f"mugraph server: port {given.tcp} cannot be used: {error.strerror or error}", file=sys.stderr)
        status = 1
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):  # it may be closed: the editor has gone
        sys.stderr.flush()
    os._exit(status)


def claim_output() -> int:
    """Standard output as a descriptor that only we know. Whatever else is printed goes to standard error from now on,
    before anything that could print is imported."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


async def serve(output: int | None, port: int | None, host: str) -> int:
    """Serves until the client leaves. The answer is the exit status. output: where to write messages, or the port to
    listen on."""
    from mugraph_server.server import MugraphServer
    from mugraph_server.transport import serve_stdio, serve_tcp

    loop = asyncio.get_running_loop()
    server = MugraphServer()
    protocol = server.protocol

    def end() -> None:
        """From any thread."""
        parent.exit_within(parent.GRACE_S, 1, server.session.kill_now)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(protocol.lost)

    def initialized(process_id: int | None) -> None:
        if process_id is not None and output is not None:  # over TCP it may be a process of another machine
            parent.watch(process_id, end)

    server.on_initialize = initialized
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        with contextlib.suppress(NotImplementedError, AttributeError):  # not on every system
            loop.add_signal_handler(getattr(signal, name), end)
    await (serve_stdio(protocol, output) if output is not None else serve_tcp(protocol, port or 0, host))
    parent.exit_within(parent.GRACE_S, protocol.status, server.session.kill_now)
    try:
        await asyncio.wait_for(server.session.stop(), parent.GRACE_S)
    except TimeoutError:
        logger.error("the engines did not stop in time; they are killed")
    server.session.kill_now()
    return protocol.status

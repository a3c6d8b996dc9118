"""A process that has imported PyTorch once and forks itself for every child that a test starts; forks.py asks it.

Arguments: the path of the socket to listen at, then NAME=VALUE for the environment, its own and its children's, and
modules to import. It ends with its standard input.

A connection starts one child. It says {"run": module or path of a script, "arguments", "environment", "folder"} as
JSON, with the descriptors of the child's standard input, output and error, and is told the child's pid (when it leads a
session of its own), and at last its status, as os.waitpid has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
environment = dict(argument.split("=", 1) for argument in sys.argv[2:] if "=" in argument)


def serve(listener: socket.socket) -> None:
    server = os.getpid()
    with selectors.DefaultSelector() as selector:
        for source in (listener, sys.stdin):
            selector.register(source, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in selector.select()):
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                start_and_wait(connection, server)
            connection.close()
            reap()
    reap()


def reap() -> None:
    """Those that have ended: what they took counts as ours then, and so in what `time` says of the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def start_and_wait(connection: socket.socket, server: int) -> None:
    """Never returns. It stays beside the child, since only a parent learns a status."""
    end_with(server)
    said, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while more := connection.recv(1 << 16):
        said += more
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with(parent)
        become(json.loads(said), descriptors, connection)
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):  # it may be that nobody asks any more
        connection.sendall(f"{status}\n".encode())
    os._exit(0)


def end_with(parent: int) -> None:
    """Nothing that hangs outlives the tests, however they end (Linux; elsewhere it may)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended a moment ago
            os._exit(1)


def become(request: dict[str, Any], descriptors: list[int], connection: socket.socket) -> None:
    """Never returns: runs the module or script as `python` would."""
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    connection.sendall(f"{os.getpid()}\n".encode())
    connection.close()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"] | environment)
    sys.argv = [request["run"], *request["arguments"]]
    status = 0
    try:
        if request["run"].endswith(".py"):
            sys.path.append(str(Path(__file__).parents[2]))  # of what stands beside it, as pytest's own process has it
            runpy.run_path(request["run"], run_name="__main__")
        else:
            runpy.run_module(request["run"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    path, *rest = sys.argv[1:]
    os.environ.update(environment)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen()
    os.rename(f"{path}.new", path)  # who finds it can connect, and waits for the imports
    for name in rest:
        if "=" not in name:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a child's collector would copy every page it looks at
    serve(listener)


if __name__ == "__main__":
    main()

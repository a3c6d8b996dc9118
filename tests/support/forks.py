"""Children of a process that has imported what they need: an import of PyTorch, with all it imports at its first use,
costs more than two seconds, a fork some milliseconds. What a child does, and how it is waited for and killed, is the
same.

That real processes are started rightly is shown where their start is what is tested (robustness, the command line,
the worker).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from mugraph.trace import forked as product
from mugraph.trace import tracer
from mugraph.verification import float_test

SERVER = Path(__file__).with_name("fork_server.py")
_SERVERS: dict[str, ForkServer] = {}
"""Now in use: see `forked`."""


class ForkServer:
    """A fork_server.py that listens at a path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.connect(self.path)
        return made


class OwnForkServer(ForkServer):
    """One that is started when it is first asked for its path or for a fork; to be closed.

    modules: imported before the first fork. environment: of the server and its forks, beside their own
    """

    def __init__(self, *modules: str, **environment: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self._socket = Path(self._folder.name, "socket")
        said = [f"{name}={value}" for name, value in environment.items()]
        self._command = [sys.executable, "-P", str(SERVER), str(self._socket), *said, *modules]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def path(self) -> str:
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE)
        while not self._socket.exists():
            assert self._process.poll() is None, "the process that forks has ended"
            time.sleep(0.01)
        return str(self._socket)

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()  # it ends with its standard input
        self._folder.cleanup()


class Fork:
    """A started child: as much of subprocess.Popen as the engine uses. It leads a session of its own."""

    def __init__(
        self,
        server: ForkServer,
        run: str,
        arguments: Sequence[str],
        *,
        stdin: int | IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.returncode: int | None = None
        self._connection, self._said = server.connect(), b""
        ours: list[IO[bytes] | None] = []
        theirs: list[int] = []
        for number, given in enumerate((stdin, stdout, stderr)):
            mine, other = _ends(given, number)
            ours.append(mine)
            theirs.append(other)
        self.stdin, self.stdout, self.stderr = ours
        request = {"run": run, "arguments": [*arguments], "environment": {**(env or os.environ)}, "folder": os.getcwd()}
        message = json.dumps(request).encode()
        sent = socket.send_fds(self._connection, [message], theirs)
        self._connection.sendall(message[sent:])
        self._connection.shutdown(socket.SHUT_WR)
        for descriptor in theirs:
            os.close(descriptor)
        line = self._line(None)
        assert line, "the process that forks has ended"
        self.pid = int(line)

    def poll(self) -> int | None:
        if self.returncode is None and (line := self._line(0.0)) is not None:
            self.returncode = os.waitstatus_to_exitcode(int(line or 9))  # without an answer: all was killed
            self._connection.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None and not self._readable(timeout):
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        status = self.poll()
        assert status is not None
        return status

    def _readable(self, timeout: float | None) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            return bool(selector.select(timeout))

    def _line(self, timeout: float | None) -> bytes | None:
        """The next one, without its end; b"" at the end of all, None if there is none in time."""
        while b"\n" not in self._said:
            if not self._readable(timeout):
                return None
            more = self._connection.recv(100)
            if not more:
                return b""
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line


def _ends(given: int | IO[bytes] | None, number: int) -> tuple[IO[bytes] | None, int]:
    """Ours, if there is one, and the child's."""
    if given == subprocess.PIPE:
        reading, writing = os.pipe()
        return (os.fdopen(writing, "wb", 0), reading) if number == 0 else (os.fdopen(reading, "rb"), writing)
    if given == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if given is None:
        return None, os.dup(number)
    assert not isinstance(given, int)
    return None, os.dup(given.fileno())


class ForkingSubprocess:
    """Stands for the module `subprocess` where a room starts `python -P -m MODULE ARGUMENTS`."""

    PIPE, DEVNULL, TimeoutExpired = subprocess.PIPE, subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    def Popen(self, command: Sequence[str], *, start_new_session: bool, **given: Any) -> Fork:
        python, *options, module = command[:4]
        assert (python, options, start_new_session) == (sys.executable, ["-P", "-m"], True)
        return Fork(self._server, module, command[4:], **given)


class _NoForkserver:
    """Stands for the module `mugraph.trace.forked` where no forkserver can be started."""

    Gone = product.Gone

    @staticmethod
    def begin(environment: Mapping[str, str]) -> None:
        pass

    @staticmethod
    def status(*_: object) -> int | None:
        raise product.Gone("a test forks")


def tracing_server() -> OwnForkServer:
    """Its forks trace users' code."""
    modules = ("mugraph.trace.session", "torch.fx.experimental.symbolic_shapes", "torch._dynamo.utils")
    return OwnForkServer(*modules, TORCH_COMPILE_DISABLE="1", PYTORCH_JIT="0", CUDA_VISIBLE_DEVICES="")


def interpreting_server() -> OwnForkServer:
    """Its forks run kernels in Triton's interpreter."""
    modules = (
        "torch._dynamo",
        "triton.language",
        "triton.runtime.interpreter",
        "triton.experimental.gluon",
        "mugraph.verification.float_inputs",
    )
    return OwnForkServer(*modules, TRITON_INTERPRET="1")


@contextmanager
def forked(tracing: ForkServer, interpreting: ForkServer) -> Generator[None]:
    """Within it, what traces users' code and what runs kernels in Triton's interpreter are forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_SERVERS, "interpreting", interpreting)
        patch.setattr(tracer, "forked", _NoForkserver)  # nor does each of many engines start its own
        patch.setattr(tracer, "subprocess", ForkingSubprocess(tracing))
        patch.setattr(float_test, "subprocess", ForkingSubprocess(interpreting))
        yield


def run_interpreted(script: Path, *arguments: str, timeout_s: float = 600.0) -> str:
    """What `TRITON_INTERPRET=1 python script arguments` prints; only where things are `forked`. Raises AssertionError,
    with what it said, if it fails."""
    server = _SERVERS["interpreting"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        child = Fork(server, str(script), arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=error)
        try:
            status = child.wait(timeout_s)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
        for file in (out, error):
            file.seek(0)
        assert status == 0, error.read().decode(errors="replace")[-2000:]
        return out.read().decode()

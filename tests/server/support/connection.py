"""A server process and the messages to and from it, over standard input and output or TCP.

It reads strictly: a byte of the server's output that is no framed message is kept in `garbage`, and is an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

Json = Any


class Refused(Exception):
    """An error response."""

    def __init__(self, error: Json) -> None:
        super().__init__(error.get("message"))
        self.code: int = error["code"]


class Connection:
    """notifications, asked: what the server has sent of its own. Its requests are answered at once, by `respond`."""

    def __init__(self, env: Mapping[str, str] | None = None, tcp: bool = False) -> None:
        self.notifications: list[Json] = []
        self.asked: list[Json] = []
        self.garbage = b""
        self._answers: dict[int, Json] = {}
        self._next = 0
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._stderr: list[bytes] = []
        way = ["--tcp", "0"] if tcp else ["--stdio"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mugraph_server", *way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | dict(env or {}),
            bufsize=0,
        )
        self._socket: socket.socket | None = None
        if tcp:
            assert self.process.stderr is not None
            line = self.process.stderr.readline().decode()
            found = re.search(r"listening on ([\d.]+):(\d+)", line)
            assert found is not None, line
            self._socket = socket.create_connection((found[1], int(found[2])))
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    def respond(self, method: str, params: Json) -> Json:
        """The result of a request of the server's."""
        return None

    # --- messages -------------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        with self._writing:
            if self._socket is not None:
                self._socket.sendall(data)
                return
            assert self.process.stdin is not None
            view = memoryview(data)
            while view:
                view = view[self.process.stdin.write(view) :]

    def send(self, *messages: Json) -> None:
        """In one write."""
        bodies = [json.dumps(message).encode() for message in messages]
        self.send_bytes(b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies))

    def notify(self, method: str, params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Json) -> int:
        """A request whose answer is waited for with `answer`."""
        self._next += 1
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def answer(self, identity: int, timeout: float = 20) -> Json:
        message = self._until(lambda: self._answers.pop(identity, None), timeout, f"the answer to {identity}")
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def request(self, method: str, params: Json, timeout: float = 20) -> Json:
        return self.answer(self.begin(method, params), timeout)

    def answered(self) -> set[Any]:
        """Ids of answers that nobody has taken yet."""
        with self._news:
            return set(self._answers)

    def raw(self, identity: int) -> Json:
        return self._answers[identity]

    def _until(self, found: Callable[[], Json], timeout: float, what: str) -> Json:
        deadline = time.monotonic() + timeout
        with self._news:
            while not (value := found()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{what}; stderr: {self.stderr[-2000:]}")
                self._news.wait(min(left, 0.05))
            return value

    def until(self, found: Callable[[], Json], timeout: float = 20, what: str = "a state") -> Json:
        """The first thing it gives that counts as true; looked at when a message has come, and now and then."""
        return self._until(found, timeout, what)

    @property
    def stderr(self) -> str:
        return b"".join(self._stderr).decode(errors="replace")

    # --- the end --------------------------------------------------------------------------------------------------

    def family(self) -> list[psutil.Process]:
        """The server and all it has started."""
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(self.process.pid)
            return [server, *server.children(recursive=True)]
        return []

    def quit(self, timeout: float = 5) -> int:
        """As an editor does. Exit status."""
        self.request("shutdown", None, timeout)
        self.notify("exit", None)
        return self.process.wait(timeout)

    def kill(self) -> None:
        """Whatever is left; for the end of a test that failed."""
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self._socket):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    # --- threads --------------------------------------------------------------------------------------------------

    def _receive(self) -> bytes:
        if self._socket is not None:
            try:
                return self._socket.recv(1 << 16)
            except OSError:
                return b""
        assert self.process.stdout is not None
        return self.process.stdout.read(1 << 16)

    def _read(self) -> None:
        buffer = b""
        while data := self._receive():
            buffer += data
            while (end := buffer.find(b"\r\n\r\n")) >= 0:
                header = re.fullmatch(rb"Content-Length: (\d+)\r\nContent-Type: [^\r\n]+", buffer[:end])
                if header is None:
                    self.garbage += buffer
                    buffer = b""
                    break
                size = end + 4 + int(header[1])
                if len(buffer) < size:
                    break
                body, buffer = buffer[end + 4 : size], buffer[size:]
                self._take(json.loads(body))
        self.garbage += buffer

    def _take(self, message: Json) -> None:
        with self._news:
            if "method" not in message:
                self._answers[message["id"]] = message
            elif "id" in message:
                self.asked.append(message)
                threading.Thread(target=self._respond, args=(message,), daemon=True).start()
            else:
                self.notifications.append(message)
            self._news.notify_all()

    def _respond(self, message: Json) -> None:
        result = self.respond(message["method"], message.get("params"))
        with contextlib.suppress(OSError, ValueError):
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := self.process.stderr.read(1 << 16):
            self._stderr.append(data)

"""An editor for tests: speaks the protocol over standard input and output or TCP, keeps texts, and applies edits.

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlparse

import psutil

Json = Any

MARKDOWN_WITH_IMAGES = {"parser": "marked", "allowedTags": ["img", "a"]}

FULL: Mapping[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True},
        "codeAction": {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True},
    },
    "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
    },
}


class Refused(Exception):
    """An error response."""

    def __init__(self, error: Json) -> None:
        super().__init__(error.get("message"))
        self.code: int = error["code"]


class Editor:
    """settings: of the section `mugraph`. asked: requests of the server that have come; they are answered by itself."""

    def __init__(
        self,
        root: Path | None,
        *,
        settings: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = FULL,
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        tcp: bool = False,
        process_id: int | None = None,
        start: bool = True,
    ) -> None:
        self.root = root
        self.settings = dict(settings or {})
        self.capabilities = capabilities
        self.options = dict(options or {})
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.notifications: list[Json] = []
        self.asked: list[Json] = []
        self.garbage = b""
        self.refuse_edits = False
        self._answers: dict[int, Json] = {}
        self._next = 0
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._process_id = os.getpid() if process_id is None else process_id
        self._stderr: list[bytes] = []
        way = ["--tcp", "0"] if tcp else ["--stdio"]
        began = time.monotonic()
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
        self.ready_s = 0.0
        if start:
            self.capabilities_of_server = self.request("initialize", self.initialize_params())["capabilities"]
            self.ready_s = time.monotonic() - began
            self.notify("initialized", {})

    def initialize_params(self) -> Json:
        folders = [{"uri": self.root.as_uri(), "name": "root"}] if self.root is not None else None
        return {
            "processId": self._process_id,
            "rootUri": self.root.as_uri() if self.root is not None else None,
            "workspaceFolders": folders,
            "capabilities": self.capabilities,
            "initializationOptions": {"settings": self.settings, **self.options},
        }

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

    # --- documents ------------------------------------------------------------------------------------------------

    def open(self, path: Path | str, text: str | None = None, language: str = "python") -> str:
        uri = path.as_uri() if isinstance(path, Path) else path
        if text is None:
            assert isinstance(path, Path)
            text = path.read_bytes().decode()
        self.texts[uri] = text
        self.versions[uri] = 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        span = {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        }
        self.texts[uri] = applied(self.texts[uri], [{"range": span, "newText": text}])
        self.changed(uri, [{"range": span, "text": text}])

    def rewrite(self, uri: str, text: str) -> None:
        self.texts[uri] = text
        self.changed(uri, [{"text": text}])

    def changed(self, uri: str, changes: Json) -> None:
        self.versions[uri] += 1
        identity = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": changes})

    def save(self, uri: str, path: Path | None = None) -> None:
        if path is not None:
            path.write_bytes(self.texts[uri].encode())
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": self.texts[uri]})

    def close_document(self, uri: str) -> None:
        del self.texts[uri], self.versions[uri]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def apply(self, edit: Json) -> None:
        apply_edit(edit, self.texts, self.versions, self.rewrite)

    # --- what is shown --------------------------------------------------------------------------------------------

    def diagnostics(self, uri: str) -> list[Json] | None:
        for message in reversed(self.notifications):
            if message["method"] == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return cast("list[Json]", message["params"]["diagnostics"])
        return None

    def codes(self, uri: str) -> list[str]:
        return [diagnostic["code"] for diagnostic in self.diagnostics(uri) or []]

    def status(self) -> Json:
        for message in reversed(self.notifications):
            if message["method"] == "mugraph/status":
                return message["params"]
        return {}

    def shown(self) -> list[str]:
        return [n["params"]["message"] for n in self.notifications if n["method"] == "window/showMessage"]

    def wait_codes(self, uri: str, *codes: str, timeout: float = 20) -> list[Json]:
        """Until its diagnostics are exactly of these codes."""
        self.until(lambda: self.codes(uri) == list(codes), timeout, f"{codes}, have {self.codes(uri)}")
        return self.diagnostics(uri) or []

    def wait_state(self, *states: str, timeout: float = 20) -> Json:
        self.until(lambda: self.status().get("state") in states, timeout, f"status {states}, is {self.status()}")
        return self.status()

    def hover(self, uri: str, line: int, character: int = 6) -> str | None:
        at = {"line": line, "character": character}
        found = self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": at})
        return found["contents"]["value"] if found is not None else None

    def lenses(self, uri: str) -> list[str]:
        found = self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [lens["command"]["title"] for lens in found]

    def actions(
        self, uri: str, line: int, only: Sequence[str] | None = None, diagnostics: Sequence[Json] = ()
    ) -> list[Json]:
        at = {"line": line, "character": 8}
        context = {"diagnostics": list(diagnostics)} | ({"only": list(only)} if only is not None else {})
        return self.request(
            "textDocument/codeAction",
            {"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": context},
        )

    def choose(self, uri: str, line: int, title: str) -> Json:
        """The action whose title begins like that, resolved and applied."""
        action = next(action for action in self.actions(uri, line) if action["title"].startswith(title))
        if "data" in action:
            action = self.request("codeAction/resolve", action)
            self.apply(action["edit"])
        else:
            command = action["command"]
            self.command(command["command"], *command["arguments"])
        return action

    def command(self, command: str, *arguments: Json) -> Json:
        return self.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    def report(self) -> Json:
        return self.request("mugraph/report", None)

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
        result: Json = None
        if message["method"] == "workspace/configuration":
            result = self.answer_configuration(message["params"]["items"])
        elif message["method"] == "workspace/applyEdit":
            if not self.refuse_edits:
                self.apply(message["params"]["edit"])
            result = {"applied": not self.refuse_edits}
        elif message["method"] == "window/showDocument":
            result = {"success": True}
        with contextlib.suppress(OSError, ValueError):
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def answer_configuration(self, items: list[Json]) -> list[Json]:
        return [self.settings for _ in items]

    def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := self.process.stderr.read(1 << 16):
            self._stderr.append(data)


def path_of(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def apply_edit(
    edit: Json, texts: Mapping[str, str], versions: Mapping[str, int | None], rewrite: Callable[[str, str], None]
) -> None:
    """As an editor applies it: files first as they come, versions compared, nothing done that was not asked.

    texts, versions: of what is open, by URI. rewrite: gives one of those another text."""

    def change_text(uri: str, version: int | None, edits: Sequence[Json]) -> None:
        if uri in texts:
            assert version in (None, versions[uri]), "an edit for another version"
            rewrite(uri, applied(texts[uri], edits))
            return
        path = path_of(uri)
        before = path.read_bytes().decode() if path.exists() else ""
        path.write_bytes(applied(before, edits).encode())

    changes: list[Json] = edit.get("documentChanges") or []
    for change in changes:
        kind = change.get("kind")
        if kind == "create":
            path = path_of(change["uri"])
            if path.exists():
                assert change["options"].get("overwrite"), f"{path} exists already"
            path.write_text("")
        elif kind == "delete":
            path_of(change["uri"]).unlink()
        else:
            change_text(change["textDocument"]["uri"], change["textDocument"].get("version"), change["edits"])
    others: dict[str, Json] = edit.get("changes") or {}
    for uri, edits in others.items():
        change_text(uri, None, edits)


def applied(text: str, edits: Sequence[Json]) -> str:
    """By the protocol's letter: UTF-16 columns, all ranges of the text as it was."""
    data = text.encode("utf-16-le")
    starts = [0]
    for match in re.finditer(r"\r\n|\r|\n", text):
        starts.append(len(text[: match.end()].encode("utf-16-le")))

    def offset(position: Json) -> int:
        line = min(int(position["line"]), len(starts) - 1)
        return min(starts[line] + 2 * int(position["character"]), len(data))

    spans: list[tuple[int, int, str]] = [
        (offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits
    ]
    for start, end, new in sorted(spans, key=_start, reverse=True):
        data = data[:start] + new.encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def _start(span: tuple[int, int, str]) -> int:
    return span[0]


def wait_gone(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that are left after that time. A zombie is gone: only its parent has not looked yet."""
    deadline = time.monotonic() + seconds
    left = list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if _lives(process)]
        time.sleep(0.02)
    return left


def slack() -> float:
    """How much longer things take because others use the machine as well; 1 on one that is ours alone."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

"""Ten thousand messages that no editor would send: each request has an answer, and the server serves on."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any, cast

import psutil

from tests.server.conftest import MakeEditor
from tests.server.support.editor import Editor
from tests.server.support.edits import applied
from tests.server.support.texts import IMPROVED

_METHODS = [
    "initialize",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didSave",
    "textDocument/didClose",
    "textDocument/hover",
    "textDocument/codeLens",
    "textDocument/codeAction",
    "codeAction/resolve",
    "textDocument/inlayHint",
    "textDocument/diagnostic",
    "textDocument/documentLink",
    "notebookDocument/didOpen",
    "notebookDocument/didChange",
    "notebookDocument/didClose",
    "workspace/executeCommand",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders",
    "window/workDoneProgress/cancel",
    "mugraph/graph",
    "mugraph/preview",
    "mugraph/theme",
    "mugraph/visible",
    "$/cancelRequest",
    "$/setTrace",
    "no/such/method",
    "",
]
_WRONG: list[Any] = [None, 7, [], {}]
_WRONG_IDS: list[Any] = [None, 9_999, [], {}, True, 1.5, "a string"]  # none that the editor gives a request of its own
_HEADERS = [
    b"Content-Length: 0\r\n\r\n",
    b"Content-Length: -5\r\n\r\n",
    b"Content-Length: 99999999999999\r\n\r\n",
    b"Nothing: 1\r\n\r\n",
    b"\r\n\r\n",
    b"\0\xff garbage \r\n\r\n",
    b"content-length:2\r\nContent-Type: x\r\n\r\n{}",
    b"Content-Length: 5\r\n\r\n{{{{{",
    b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc",
]


class _Fuzz:
    def __init__(self, seed: int, uri: str) -> None:
        self.chance = random.Random(seed)
        self.uri = uri

    def value(self, depth: int = 0) -> Any:
        chance = self.chance
        kind = chance.randrange(10 if depth < 4 else 7)
        simple: list[Any] = [
            None,
            chance.choice([True, False]),
            chance.choice([0, 1, -1, 2**31, -(2**63), 1e308, 0.5]),
            chance.choice(["", "a", "file:///x.py", self.uri, "\ud800", "x" * 3000, "\0", "𝄞"]),
            self.position(),
            {"start": self.position(), "end": self.position()},
            {"uri": self.uri, "version": chance.randrange(-2, 100)},
        ]
        if kind < 7:
            return simple[kind]
        if kind == 7:
            return [self.value(depth + 1) for _ in range(chance.randrange(4))]
        names: list[str] = [
            "uri",
            "textDocument",
            "position",
            "range",
            "contentChanges",
            "text",
            "command",
            "arguments",
            "id",
        ]
        names += ["notebookDocument", "change", "cells", "structure", "token", "settings", "event", "context", "data"]
        return {chance.choice(names): self.value(depth + 1) for _ in range(chance.randrange(5))}

    def position(self) -> Any:
        return {"line": self.chance.randrange(-1, 12), "character": self.chance.randrange(-1, 60)}

    def params(self, method: str) -> Any:
        """Often almost right."""
        chance, document = self.chance, {"uri": self.uri, "version": self.chance.randrange(1, 50)}
        span = {"start": self.position(), "end": self.position()}
        if chance.random() < 0.5:
            return self.value()
        right: dict[str, Any] = {
            "textDocument": document,
            "position": self.position(),
            "range": span,
            "context": {"diagnostics": [], "only": chance.choice([None, [], ["x"], [1]])},
            "contentChanges": [{"range": span, "text": chance.choice(["", "\n", "x", "𝄞", "\r"])}],
            "command": chance.choice(["mugraph.apply", "mugraph.cancel", "mugraph.clearResults", "nothing"]),
            "arguments": [self.value()],
        }
        if method.endswith("didOpen"):
            right["textDocument"] = {"uri": self.uri, "languageId": "python", "version": 1, "text": IMPROVED}
        if chance.random() < 0.3:
            right.pop(chance.choice(sorted(right)))
        return right

    def message(self, identity: int) -> Any:
        chance = self.chance
        method: Any = chance.choice(_METHODS)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": self.params(method)}
        if chance.random() < 0.6:
            message["id"] = identity
        if chance.random() < 0.05:
            message["jsonrpc"] = chance.choice(["1.0", None, 2])
        if chance.random() < 0.05:
            message["method"] = chance.choice(_WRONG)
        if chance.random() < 0.05:
            message["id"] = chance.choice([*_WRONG_IDS, float(identity)])
        if chance.random() < 0.05:
            del message["method"]
            message[chance.choice(["result", "error"])] = self.value()
        return message if chance.random() < 0.98 else self.value()


def _asks(message: Any) -> int | None:
    """The id of a message that has to be answered under it."""
    if not isinstance(message, dict):
        return None
    given = cast("dict[str, object]", message)
    identity = given.get("id")
    proper = given.get("jsonrpc") == "2.0" and isinstance(given.get("method"), str)
    return identity if proper and isinstance(identity, int) and not isinstance(identity, bool) else None


def test_ten_thousand_messages(editor: MakeEditor, root: Path) -> None:
    client: Editor = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    fuzz = _Fuzz(11, uri)
    asked: set[int] = set()
    server = psutil.Process(client.process.pid)
    before = 0
    for number in range(10_000):
        if number == 1_000:
            before = server.memory_info().rss
        if fuzz.chance.random() < 0.03:
            client.send_bytes(fuzz.chance.choice(_HEADERS))
            continue
        message = fuzz.message(number + 10_000)
        body = json.dumps(message).encode()
        client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        identity = _asks(message)
        if identity is not None:
            asked.add(identity)
    deadline = time.monotonic() + 60
    other = client.open(root / "other.py", IMPROVED)
    client.until(lambda: "improved" in str(client.lenses(other)) or "verified" in str(client.lenses(other)), 60)
    while missing := asked - client.answered():
        assert time.monotonic() < deadline, f"{len(missing)} requests have no answer, such as {min(missing)}"
        time.sleep(0.05)
    assert server.memory_info().rss - before < 60_000_000
    assert len(server.children()) == 1
    assert client.report()["engines"][0]["restarts"] == 0


_PIECES = ["a", "b", " ", "\n", "\r\n", "é", "μ", "𝄞", "👩‍🔬", "\u2028", "\t", "x = 1\n"]


def test_the_servers_text_is_the_clients_after_each_edit(editor: MakeEditor, root: Path) -> None:
    """Random edits of a docstring, several in a message, some past the end of a line or inside a character. What the
    server holds is what it would hand to the engine."""
    chance = random.Random(5)
    client: Editor = editor()
    uri = client.open(root / "model.py", '"""\nwords\n𝄞 more\n"""\n' + IMPROVED)
    (found,) = client.wait_codes(uri, "improved")
    asked = {"uri": uri, "keys": [found["data"]["key"]]}
    for _ in range(400):
        changes: list[Any] = []
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            text = client.texts[uri]
            lines = re.split(r"\r\n|\r|\n", text)
            last = lines.index('"""', 1) - 1
            if last < 1:  # everything went
                span, new = _span((1, 0), (1, 0)), "words\n"
            else:
                start, end = sorted((_place(chance, lines, last), _place(chance, lines, last)))
                span, new = _span(start, end), "".join(chance.choices(_PIECES, k=chance.randrange(5)))
            if len(lines) > 60:
                span, new = _span((1, 0), (last, 0)), ""
            understood = {**span, **{name: _whole(lines, span[name]) for name in ("start", "end")}}
            client.texts[uri] = applied(text, [{"range": understood, "newText": new}])
            changes.append({"range": span, "text": new})
        client.changed(uri, changes)
        assert client.request("mugraph/preview", asked)["before"] == client.texts[uri]


def _place(chance: random.Random, lines: list[str], last: int) -> tuple[int, int]:
    """In UTF-16 units: mostly in the line, seldom past its end, anywhere within a character."""
    number = chance.randint(1, last)
    length = _units(lines[number])
    return number, chance.randint(0, length) if chance.random() < 0.9 else length + chance.randrange(1, 9)


def _span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    names = "start", "end"
    return {name: {"line": at[0], "character": at[1]} for name, at in zip(names, (start, end), strict=True)}


def _whole(lines: list[str], at: dict[str, int]) -> dict[str, int]:
    """The place that is meant: no further than the line's end, and before a character rather than inside."""
    character = 0
    for piece in lines[at["line"]]:
        if character + _units(piece) > at["character"]:
            break
        character += _units(piece)
    return {"line": at["line"], "character": character}


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_messages_before_initialize_are_refused(editor: MakeEditor) -> None:
    client: Editor = editor(start=False)
    client.notify("textDocument/didOpen", {})
    early = client.begin("textDocument/hover", {})
    first = client.begin("initialize", client.initialize_params())
    second = client.begin("initialize", client.initialize_params())
    client.until(lambda: {early, first, second} <= client.answered())
    codes = {identity: client.raw(identity).get("error", {}).get("code") for identity in (early, first, second)}
    assert codes == {early: -32002, first: None, second: -32600}
    client.notify("initialized", {})


def test_messages_in_pieces(editor: MakeEditor, root: Path) -> None:
    """Cut at every byte, and several at once."""
    client: Editor = editor()
    body = json.dumps({"jsonrpc": "2.0", "id": 900, "method": "mugraph/report", "params": None}).encode()
    for byte in b"Content-Length: %d\r\n\r\n%b" % (len(body), body):
        client.send_bytes(bytes([byte]))
    assert client.answer(900)["versions"]
    client.send(*({"jsonrpc": "2.0", "id": n, "method": "mugraph/report", "params": None} for n in range(901, 920)))
    for identity in range(901, 920):
        assert client.answer(identity)["versions"]


def test_exit_without_shutdown_is_an_error(editor: MakeEditor, root: Path) -> None:
    client: Editor = editor()
    client.notify("exit", None)
    assert client.process.wait(3) == 1


def test_after_shutdown_only_exit_counts(editor: MakeEditor, root: Path) -> None:
    client: Editor = editor()
    client.request("shutdown", None)
    late = client.begin("textDocument/hover", {})
    client.until(lambda: late in client.answered())
    assert client.raw(late)["error"]["code"] == -32600
    client.notify("exit", None)
    assert client.process.wait(3) == 0

"""An editor for tests: keeps texts as an editor does, applies edits, and knows what it would show."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tests.server.support.connection import Connection, Json
from tests.server.support.edits import applied, apply_edit

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


class Editor(Connection):
    """settings: of the section `mugraph`."""

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
        self.refuse_edits = False
        self._process_id = os.getpid() if process_id is None else process_id
        began = time.monotonic()
        super().__init__(env, tcp)
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

    def respond(self, method: str, params: Json) -> Json:
        if method == "workspace/configuration":
            return self.answer_configuration(params["items"])
        if method == "workspace/applyEdit":
            if not self.refuse_edits:
                self.apply(params["edit"])
            return {"applied": not self.refuse_edits}
        return {"success": True} if method == "window/showDocument" else None

    def answer_configuration(self, items: list[Json]) -> list[Json]:
        return [self.settings for _ in items]

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

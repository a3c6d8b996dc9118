"""pytest-lsp's client, with what an editor does beside: it holds a text, saves it, and applies the edits it is given.

pytest-lsp checks what the server sends against what the client has said that it can; here a breach is an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import psutil
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

from tests.server.support.edits import apply_edit
from tests.server.support.processes import wait_gone

_SERVER = [sys.executable, "-m", "mugraph", "server"]
_SECONDS = 400


class Session:
    """A server, its client, and the state it said last."""

    def __init__(self, client: LanguageClient, root: Path, settings: Mapping[str, Any]) -> None:
        self.client = client
        self.root = root
        self.state = ""
        self.open: dict[str, Document] = {}
        client.set_configuration(dict(settings), section="mugraph")

        def status(_: LanguageClient, params: Any) -> None:
            self.state = params.state

        def registered(_: LanguageClient, params: types.RegistrationParams) -> None:
            assert params.registrations

        def refresh(*_: object) -> None:
            """Views are asked for when they are looked at."""

        def apply(_: LanguageClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.apply(params.edit)
            return types.ApplyWorkspaceEditResult(applied=True)

        features: Mapping[str, Callable[..., object]] = {
            "mugraph/status": status,
            types.CLIENT_REGISTER_CAPABILITY: registered,
            types.WORKSPACE_APPLY_EDIT: apply,
            types.WORKSPACE_CODE_LENS_REFRESH: refresh,
            types.WORKSPACE_INLAY_HINT_REFRESH: refresh,
        }
        for name, feature in features.items():
            client.feature(name)(feature)

    def apply(self, edit: types.WorkspaceEdit) -> None:
        texts = {uri: document.text for uri, document in self.open.items()}
        versions = {uri: document.version for uri, document in self.open.items()}
        apply_edit(
            cast("dict[str, Any]", get_converter().unstructure(edit, types.WorkspaceEdit)),
            texts,
            versions,
            lambda uri, text: self.open[uri].rewrite(text),
        )


def make_client() -> LanguageClient:
    """pytest-lsp's own, except that it reads a code action with a command as one: lsprotocol takes it for a command."""
    made = default_converter()

    def structured(given: Mapping[str, Any], _: object) -> object:
        return made.structure(given, types.Command if isinstance(given.get("command"), str) else types.CodeAction)

    made.register_structure_hook(types.Command | types.CodeAction, structured)
    client = LanguageClient(converter_factory=lambda: made)
    register_lsp_features(client)
    return client


@asynccontextmanager
async def over_stdio(
    root: Path, settings: Mapping[str, Any], env: Mapping[str, str], editor: str
) -> AsyncGenerator[Session]:
    """editor: whose abilities the client claims, by pytest-lsp's names."""
    made: list[Session] = []

    def make() -> LanguageClient:
        made.append(Session(make_client(), root, settings))
        return made[0].client

    before = set(psutil.Process().children())
    config = ClientServerConfig([*_SERVER, "--stdio"], client_factory=make, server_env={**os.environ, **env})
    await config.start()
    (server,) = set(psutil.Process().children()) - before
    async with _served(made[0], server, editor):
        yield made[0]


@asynccontextmanager
async def over_tcp(
    root: Path, settings: Mapping[str, Any], env: Mapping[str, str], editor: str
) -> AsyncGenerator[Session]:
    process = await asyncio.create_subprocess_exec(
        *_SERVER, "--tcp", "0", stderr=asyncio.subprocess.PIPE, env={**os.environ, **env}
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    found = re.search(r"listening on ([\d.]+):(\d+)", line)
    assert found is not None, line
    drain = asyncio.create_task(process.stderr.read())
    session = Session(make_client(), root, settings)
    await session.client.start_tcp(found[1], int(found[2]))
    async with _served(session, psutil.Process(process.pid), editor):
        yield session
    assert await process.wait() == 0
    assert b"Traceback" not in await drain


@asynccontextmanager
async def _served(session: Session, server: psutil.Process, editor: str) -> AsyncGenerator[None]:
    """From initialize to exit. Nothing is left of what the server has started."""
    client = session.client
    family: list[psutil.Process] = []
    try:
        params = types.InitializeParams(
            client_capabilities(editor),
            root_uri=session.root.as_uri(),
            workspace_folders=[types.WorkspaceFolder(session.root.as_uri(), "root")],
        )
        result = await client.initialize_session(params)
        assert result.server_info is not None
        assert result.server_info.name == "mugraph"
        yield
        assert client.error is None
        family = [server, *server.children(recursive=True)]
        await client.shutdown_session()
        assert wait_gone(family, 2) == []
    finally:
        if server.is_running():
            family = [server, *server.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        await client.stop()


class Document:
    """A file that is open in a session."""

    def __init__(self, session: Session, path: Path) -> None:
        self._session = session
        self._client = session.client
        self._path = path
        self.uri = path.as_uri()
        self.text = path.read_bytes().decode()
        self.version = 1
        session.open[self.uri] = self
        item = types.TextDocumentItem(self.uri, "python", 1, self.text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    @property
    def _identity(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    @property
    def diagnostics(self) -> Sequence[types.Diagnostic]:
        return self._client.diagnostics.get(self.uri, [])

    def found(self, code: str) -> list[types.Diagnostic]:
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.code == code]

    async def until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not true():
            assert time.monotonic() < deadline, f"{what}: {self._session.state}, {self.diagnostics}"
            await asyncio.sleep(0.02)

    async def settled(self) -> None:
        """Its regions are found and searched."""
        deadline = time.monotonic() + _SECONDS
        titles: list[str] = []
        while not titles or any("searching" in title for title in titles):
            assert time.monotonic() < deadline, f"{titles}, {self._session.state}"
            titles = [lens.command.title for lens in await self.lenses() if lens.command is not None]
            await asyncio.sleep(0.05)
        await self.until(lambda: self._session.state == "idle", "an idle engine")

    async def lenses(self) -> Sequence[types.CodeLens]:
        return await self._client.text_document_code_lens_async(types.CodeLensParams(self._identity)) or []

    async def hover(self, at: types.Position) -> str:
        found = await self._client.text_document_hover_async(types.HoverParams(self._identity, at))
        assert found is not None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def actions(self, at: types.Position) -> list[types.CodeAction]:
        place, context = types.Range(at, at), types.CodeActionContext([])
        params = types.CodeActionParams(self._identity, place, context)
        found = await self._client.text_document_code_action_async(params) or []
        return [one for one in found if isinstance(one, types.CodeAction)]

    async def choose(self, action: types.CodeAction) -> None:
        """Its edit is asked for and applied, or its command has the server send it."""
        if action.command is not None:
            command = action.command
            params = types.ExecuteCommandParams(command.command, command.arguments)
            await self._client.workspace_execute_command_async(params)
            return
        resolved = await self._client.code_action_resolve_async(action)
        assert resolved.edit is not None
        self._session.apply(resolved.edit)

    def rewrite(self, text: str) -> None:
        self.text = text
        self.version += 1
        identity = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(identity, [change]))

    def write(self) -> None:
        self._path.write_bytes(self.text.encode())

    def save(self) -> None:
        self.write()
        self._client.text_document_did_save(types.DidSaveTextDocumentParams(self._identity, self.text))

    def close(self) -> None:
        del self._session.open[self.uri]
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(self._identity))

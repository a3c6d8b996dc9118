"""What the user does about regions: edits, which the engine makes for the text as it is now, and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from lsprotocol import types
from mugraph.protocol import messages as m
from mugraph.protocol.messages import ToEngine
from mugraph.protocol.values import Document as EngineDocument
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.uris import from_fs_path

from mugraph_server.command_arguments import is_text_mapping, string, strings
from mugraph_server.documents.source import Source
from mugraph_server.edits import CannotEdit, without_files, without_versions, workspace_edit, write_files
from mugraph_server.engine.client import ids
from mugraph_server.engine.state import EngineGone, EngineRefused
from mugraph_server.log import log_path
from mugraph_server.report import report
from mugraph_server.session import Session
from mugraph_server.views.code_actions import AGAIN, APPLY, REVERT, REVERT_AND_SEARCH, SHAPES
from mugraph_server.views.ways import with_others
from mugraph_server.workspace_search import WorkspaceSearch

A = TypeVar("A")

REQUEST_FAILED, CONTENT_MODIFIED = -32803, -32801


class Acts:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._workspace = WorkspaceSearch(session)
        self._commands: Mapping[str, Callable[[list[object]], Awaitable[object]]] = {
            APPLY: self._apply,
            REVERT: self._revert,
            SHAPES: self._shapes,
            AGAIN: self._again,
            REVERT_AND_SEARCH: self._revert_and_search,
            "mugraph.cancel": self._cancel,
            "mugraph.restart": self._restart,
            "mugraph.searchWorkspace": self._search_workspace,
            "mugraph.clearResults": self._clear,
            "mugraph.showLog": self._show_log,
            "mugraph.reports.text": self._report,
        }

    @property
    def commands(self) -> list[str]:
        return sorted(self._commands)

    async def run(self, command: str, arguments: Sequence[object]) -> object:
        known = self._commands.get(command)
        if known is None:
            raise JsonRpcInvalidParams(f"there is no command {command!r}")
        return await known(list(arguments))

    def cancel(self, source: Source) -> None:
        """Cancels the search of a source; for a file that is not open, the search of the whole workspace."""
        self._session.searches.cancel(source)
        if self._session.documents.source(source.uri) is None:
            self._workspace.cancel()

    # --- edits ----------------------------------------------------------------------------------------------------

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edit. Raises what the client shows: why it cannot be done."""
        data = cast(object, action.data)
        if not isinstance(data, dict):
            return action
        data = cast("dict[str, object]", data)
        command, arguments = data.get("command"), data.get("arguments")
        if not isinstance(arguments, list):
            raise JsonRpcInvalidParams("this code action is not one of ours")
        prepare = {APPLY: self._applying, REVERT: self._reverting, SHAPES: self._inserting}.get(str(command))
        if prepare is None:
            raise JsonRpcInvalidParams("this code action is not one of ours")
        _, action.edit = await prepare(cast("list[object]", arguments))
        return action

    async def _applying(self, arguments: list[object]) -> tuple[m.Edit, types.WorkspaceEdit]:
        source = self._source(arguments)
        keys = self._all_ways(source, strings(arguments, 1))
        if source.kind == "untitled":
            raise _failed("save the file first: the kernel module stands beside it")
        await self._session.analysis.known(source, keys)
        return await self._edit(source, lambda document: m.PrepareEdit(next(ids), document, keys))

    async def _reverting(self, arguments: list[object]) -> tuple[m.Edit, types.WorkspaceEdit]:
        return await self._edit(self._source(arguments), lambda document: m.PrepareRevert(next(ids), document))

    async def _inserting(self, arguments: list[object]) -> tuple[m.Edit, types.WorkspaceEdit]:
        function, given = string(arguments, 1), arguments[2] if len(arguments) > 2 else None
        if given is not None and not is_text_mapping(given):
            raise JsonRpcInvalidParams("shapes are given as names and texts")
        shapes = cast("dict[str, str] | None", given)
        return await self._edit(
            self._source(arguments), lambda document: m.InsertShapes(next(ids), document, function, shapes)
        )

    async def _edit(
        self, source: Source, request: Callable[[EngineDocument], ToEngine]
    ) -> tuple[m.Edit, types.WorkspaceEdit]:
        """Raises when the text changed meanwhile: a client does not compare the versions of a code action's edit."""
        stamp = source.stamp
        versions = {document.uri: document.version for document in source.documents}
        found = await self._ask(source, request(self._session.searches.document(source)), m.Edit)
        if source.stamp != stamp or self._session.analysis.source(source.uri) is not source:
            raise JsonRpcException("the text was changed meanwhile; try again", CONTENT_MODIFIED)
        try:
            edit = workspace_edit(source, found, lambda document: versions.get(document.uri, document.version))
        except CannotEdit as error:
            raise _failed(str(error)) from None
        for note in found.notes:
            self._session.client.show(f"mugraph: {note}", types.MessageType.Info)
        return found, edit

    async def _apply(self, arguments: list[object]) -> object:
        return await self._send(*await self._applying(arguments))

    async def _revert(self, arguments: list[object]) -> object:
        return await self._send(*await self._reverting(arguments))

    async def _shapes(self, arguments: list[object]) -> object:
        return await self._send(*await self._inserting(arguments))

    async def _send(self, found: m.Edit, edit: types.WorkspaceEdit) -> bool:
        """Sends an edit to the client, which applies it. If the client cannot create files, they are written here after
        it has applied the rest. New ones are written first: the edited text imports them."""
        client = self._session.client
        if not client.can.applies:
            raise _failed("this editor takes no edits from a server")
        files = bool(found.create or found.delete)
        by_client = client.can.edits and (client.can.creates or not found.create)
        by_client = by_client and (client.can.deletes or not found.delete)
        if files and not by_client:
            try:
                await asyncio.to_thread(write_files, m.Edit(0, "", 0, [], "", create=found.create))
            except OSError as error:
                raise _failed(f"the kernel module cannot be written: {error.strerror or error}") from None
            edit = without_files(edit)
        if not client.can.edits:
            edit = without_versions(edit)
        refused = await client.apply(edit, found.label)
        if refused is not None:
            for path in found.create if files and not by_client else ():
                Path(path).unlink(missing_ok=True)
            raise _failed(refused)
        if files and not by_client:
            await asyncio.to_thread(write_files, m.Edit(0, "", 0, [], "", delete=found.delete))
        return True

    # --- other commands -------------------------------------------------------------------------------------------

    async def _again(self, arguments: list[object]) -> object:
        source = self._source(arguments)
        key = arguments[1] if len(arguments) > 1 else None
        self._session.analysis.search(source, (key,) if isinstance(key, str) else None)
        return None

    async def _revert_and_search(self, arguments: list[object]) -> object:
        source = self._source(arguments)
        await self._revert(arguments)
        await asyncio.sleep(0)
        self._session.analysis.search(source, again=False)
        return None

    async def _cancel(self, arguments: list[object]) -> object:
        self.cancel(self._source(arguments))
        return None

    async def _restart(self, arguments: list[object]) -> object:
        await self._session.restart_engines()
        return None

    async def _clear(self, arguments: list[object]) -> object:
        """Forgets what is shown; the store keeps its results."""
        session = self._session
        session.searches.abandon_all()
        session.analysis.forget_others()
        session.regions.clear()
        return None

    async def _show_log(self, arguments: list[object]) -> object:
        path = log_path()
        uri = from_fs_path(str(path))
        if self._session.client.can.shows_documents and uri is not None:
            await self._session.client.open_document(uri)
        return str(path)

    async def _report(self, arguments: list[object]) -> object:
        return await report(self._session)

    async def _search_workspace(self, arguments: list[object]) -> object:
        """Starts the search of every file of the workspace, in the background. The answer is how many there are."""
        return await self._workspace.begin()

    # --- what only some clients ask for ---------------------------------------------------------------------------

    async def graph(self, uri: str, key: str, theme: str) -> str:
        """The whole μGraph as an SVG document."""
        source = self._source([uri])
        await self._session.analysis.known(source, [key])
        request = m.Draw(next(ids), source.uri, key, "svg", "dark" if theme == "dark" else "light")
        return (await self._ask(source, request, m.Drawing)).text

    async def preview(self, uri: str, keys: list[str] | None) -> m.KernelPreview:
        source = self._source([uri])
        keys = self._all_ways(source, keys)
        await self._session.analysis.known(source, keys)
        request = m.Preview(next(ids), self._session.searches.document(source), keys)
        return await self._ask(source, request, m.KernelPreview)

    # --- small things ---------------------------------------------------------------------------------------------

    async def _ask(self, source: Source, request: ToEngine, answer: type[A]) -> A:
        settings = self._session.settings(source)
        if not settings.trusted:
            raise _failed("the workspace is not trusted, so none of its code is run")
        try:
            return await self._session.engines.of(source.path).ask(request, answer)
        except (EngineGone, EngineRefused) as error:
            raise _failed(str(error)) from None

    def _all_ways(self, source: Source, keys: list[str] | None) -> list[str] | None:
        """Code is replaced once, for all calls that there are kernels for."""
        file = self._session.regions.get(source.uri)
        return with_others(file, keys) if file is not None and keys is not None else keys

    def _source(self, arguments: Sequence[object]) -> Source:
        uri = string(arguments, 0)
        source = self._session.analysis.source(uri)
        if source is None:
            raise _failed("this file is not open")
        return source


def _failed(sentence: str) -> JsonRpcException:
    return JsonRpcException(sentence, REQUEST_FAILED)

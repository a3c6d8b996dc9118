"""Which message goes where. Notifications go to plain functions, which only take note; requests go to coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import msgspec
from lsprotocol import types
from mugraph.protocol.settings import Settings
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from mugraph_server.acts import Acts
from mugraph_server.client import Client
from mugraph_server.documents.source import Document, Source
from mugraph_server.log import logger
from mugraph_server.protocol import MugraphProtocol, converter
from mugraph_server.regions import FileState
from mugraph_server.session import Session
from mugraph_server.views import code_actions, code_lens, diagnostics, hover, inlay_hints, links, search

DRAWING_S = 0.2
"""Seconds that a hover waits for its drawing, which was begun when the region's result came."""

_SYNC = types.TextDocumentSyncKind.Incremental
_PYTHON = types.NotebookDocumentFilterWithCells(
    cells=[types.NotebookCellLanguage("python")],
)


class MugraphServer(LanguageServer):
    protocol: MugraphProtocol  # pyright: ignore[reportIncompatibleVariableOverride] # it is the class given below

    def __init__(self) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "mugraph",
            _version(),
            text_document_sync_kind=_SYNC,
            notebook_document_sync=types.NotebookDocumentSyncOptions([_PYTHON], save=True),
            protocol_cls=MugraphProtocol,
            converter_factory=converter,
        )
        self.session = Session(Client(self))
        self.acts = Acts(self.session)
        self.protocol.host = self
        self.hovers = 0
        self.on_initialize: Callable[[int | None], None] = lambda _: None
        self._notifications()
        self._requests()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """pygls would tell the client, who may be gone, and then report that that failed."""
        logger.warning("%s: %s", getattr(source, "__name__", source), error)

    # --- the protocol's host --------------------------------------------------------------------------------------

    def adjust(self, capabilities: types.ServerCapabilities) -> None:
        capabilities.execute_command_provider = types.ExecuteCommandOptions(self.acts.commands)
        if not self.session.client.can.pulls:
            capabilities.diagnostic_provider = None  # pushed: both would say everything twice

    async def stop(self) -> None:
        await self.session.stop()

    # --- what goes where ------------------------------------------------------------------------------------------

    def _on(self, method: str, handler: Callable[[Any], object], options: object | None = None) -> None:
        """Registers a function of its own for each message: pygls sets attributes on it, which it cannot do on a
        method."""
        if inspect.iscoroutinefunction(handler):

            async def answer(params: Any) -> object:
                return await handler(params)

            registered: Callable[[Any], object] = answer
        else:

            def take(params: Any) -> object:
                return handler(params)

            registered = take
        self.protocol.fm.feature(method, options)(registered)  # pyright: ignore[reportUnknownMemberType]

    def _notifications(self) -> None:
        documents = self.session.documents
        self._on(types.INITIALIZE, self._initialize)
        self._on(types.INITIALIZED, self._initialized)
        self._on(types.TEXT_DOCUMENT_DID_OPEN, documents.did_open)
        self._on(types.TEXT_DOCUMENT_DID_CHANGE, documents.did_change)
        self._on(types.TEXT_DOCUMENT_DID_SAVE, documents.did_save, types.SaveOptions(include_text=True))
        self._on(types.TEXT_DOCUMENT_DID_CLOSE, documents.did_close)
        self._on(types.NOTEBOOK_DOCUMENT_DID_OPEN, documents.notebook_opened)
        self._on(types.NOTEBOOK_DOCUMENT_DID_CHANGE, documents.notebook_changed)
        self._on(types.NOTEBOOK_DOCUMENT_DID_SAVE, documents.notebook_saved)
        self._on(types.NOTEBOOK_DOCUMENT_DID_CLOSE, documents.notebook_closed)
        self._on(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._configuration)
        self._on(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._folders)
        self._on(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, self._cancel_progress)
        self._on("mugraph/theme", self._theme)
        self._on("mugraph/trust", self._trust)
        self._on("mugraph/visible", self._visible)

    def _requests(self) -> None:
        self._on(types.TEXT_DOCUMENT_HOVER, self._hover)
        self._on(types.TEXT_DOCUMENT_CODE_LENS, self._lenses)
        self._on(types.TEXT_DOCUMENT_INLAY_HINT, self._hints)
        self._on(types.TEXT_DOCUMENT_DOCUMENT_LINK, self._links)
        kinds = types.CodeActionOptions(code_action_kinds=list(code_actions.KINDS), resolve_provider=True)
        self._on(types.TEXT_DOCUMENT_CODE_ACTION, self._actions, kinds)
        self._on(types.CODE_ACTION_RESOLVE, self._resolve)
        pulled = types.DiagnosticOptions(False, False, identifier="mugraph")
        self._on(types.TEXT_DOCUMENT_DIAGNOSTIC, self._diagnostics, pulled)
        self._on(types.WORKSPACE_EXECUTE_COMMAND, self._execute)
        self._on("mugraph/report", self._report)
        self._on("mugraph/graph", self._graph)
        self._on("mugraph/search", self._search)
        self._on("mugraph/preview", self._preview)

    # --- notifications --------------------------------------------------------------------------------------------

    def _initialize(self, params: types.InitializeParams) -> None:
        self.on_initialize(params.process_id)
        self.session.begin(params)

    def _initialized(self, _: types.InitializedParams) -> None:
        self.session.begun()

    def _configuration(self, params: types.DidChangeConfigurationParams) -> None:
        self.session.spawn(self.session.given.push(params.settings))

    def _folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self.session.set_folders(params.event)

    def _cancel_progress(self, params: types.WorkDoneProgressCancelParams) -> None:
        uri = self.session.publisher.bar_of(params.token)
        source = self.session.analysis.source(uri) if uri is not None else None
        if source is not None:
            self.acts.cancel(source)

    def _theme(self, params: Any) -> None:
        theme = "dark" if _value(params, "theme") == "dark" else "light"
        self.session.spawn(self.session.given.set_state(theme=theme))

    def _trust(self, params: Any) -> None:
        self.session.spawn(self.session.given.set_state(trusted=_value(params, "trusted") is True))

    def _visible(self, params: Any) -> None:
        """The editor shows this document now."""
        uri = _value(params, "uri")
        source = self.session.analysis.source(uri) if isinstance(uri, str) else None
        if source is not None:
            self.session.analysis.shown(source)

    # --- views ----------------------------------------------------------------------------------------------------

    def _place(self, uri: str) -> tuple[Source, Document, FileState, Settings] | None:
        """What a view is made of, judged by the text as it is now."""
        document = self.session.documents.document(uri)
        source = self.session.documents.source(uri)
        if document is None or source is None:
            return None
        self.session.analysis.judge_now(source)
        file = self.session.regions.get(source.uri)
        return (source, document, file, self.session.settings(source)) if file is not None else None

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        await asyncio.sleep(0)  # a cancellation that has arrived already takes effect before anything is computed
        place = self._place(params.text_document.uri)
        if place is None or not place[3].hover:
            return None
        self.hovers += 1
        source, document, file, settings = place
        mark = hover.mark_at(source, document, file, params.position)
        if mark is None:
            return None
        can, drawing = self.session.client.can, None
        if file.state(mark) in ("improved", "no-gain", "searching", "queued"):
            region = mark.result
            if region is not None and region.id:
                form = "overview" if can.images else "text"
                drawing = await self.session.inquiries.draw(source, region, form, settings.theme, DRAWING_S)
        made = hover.content(source, file, mark, drawing, can.images, can.commands)
        spot = source.place(mark.range)
        return types.Hover(made, spot[1] if spot is not None and spot[0] is document else None)

    async def _lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        place = self._place(params.text_document.uri)
        if place is None or not place[3].code_lens:
            return []
        return code_lens.lenses(*place[:3])

    async def _hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        place = self._place(params.text_document.uri)
        if place is None or not place[3].inlay_hints:
            return []
        return inlay_hints.inlay_hints(*place[:3], params.range)

    async def _links(self, params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        place = self._place(params.text_document.uri)
        return links.links(*place[:3]) if place is not None else []

    async def _actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        place = self._place(params.text_document.uri)
        if place is None:
            return []
        return code_actions.actions(*place[:3], params.context, params.range, self.session.client.can)

    async def _resolve(self, action: types.CodeAction) -> types.CodeAction:
        return await self.acts.resolve(action)

    async def _diagnostics(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        place = self._place(params.text_document.uri)
        if place is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        source, document, file, settings = place
        identity = f"{diagnostics.result_id(source, file)}.{settings.diagnostics:d}"
        if params.previous_result_id == identity:
            return types.RelatedUnchangedDocumentDiagnosticReport(identity)
        found = self.session.publisher.diagnostics(source, document, file)
        return types.RelatedFullDocumentDiagnosticReport(found, result_id=identity)

    # --- commands -------------------------------------------------------------------------------------------------

    async def _execute(self, params: types.ExecuteCommandParams) -> object:
        try:
            return await self.acts.run(params.command, params.arguments or ())
        except asyncio.CancelledError:
            if self.protocol.is_shut_down:  # the client asked for the end, not for an error
                return None
            raise

    async def _report(self, _: Any) -> object:
        return {**cast("dict[str, object]", await self.acts.run("mugraph.reports.text", ())), "hovers": self.hovers}

    async def _graph(self, params: Any) -> object:
        """{"uri", "key", "theme"} -> {"svg"}"""
        theme = _value(params, "theme")
        svg = await self.acts.graph(_text(params, "uri"), _text(params, "key"), str(theme))
        return {"svg": svg}

    async def _search(self, params: Any) -> object:
        """{"uri", "key" or "line"} -> as views.search has it; None where the document has no such region"""
        place, key, line = self._place(_text(params, "uri")), _value(params, "key"), _value(params, "line")
        if not isinstance(key, str | None) or not isinstance(line, int | None):
            raise JsonRpcInvalidParams("key must be a string, line a number")
        if place is None:
            return None
        mark = search.chosen(*place[:3], key, line or 0)
        return search.search(*place[:3], mark) if mark is not None else None

    async def _preview(self, params: Any) -> object:
        """{"uri", "keys"} -> {"module_path", "module_text", "before", "after", ...}"""
        keys = _value(params, "keys")
        names = [str(key) for key in cast("list[object]", keys)] if isinstance(keys, list) else None
        return msgspec.to_builtins(await self.acts.preview(_text(params, "uri"), names))


def _value(params: Any, name: str) -> object:
    return cast("dict[str, object]", params).get(name) if isinstance(params, dict) else None


def _text(params: Any, name: str) -> str:
    value = _value(params, name)
    if not isinstance(value, str):
        raise JsonRpcInvalidParams(f"{name} must be a string")
    return value


def _version() -> str:
    try:
        return version("mugraph")
    except PackageNotFoundError:
        return "unknown"

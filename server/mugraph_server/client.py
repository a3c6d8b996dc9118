"""What the server says to the client. A request whose answer does not matter is sent again only once it was
answered."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from mugraph_server.abilities import Abilities
from mugraph_server.log import logger

_UNANSWERED_S = 10.0
"""Seconds after which a client that does not answer is asked again."""


class Client:
    """Never raises for what the client does."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._open: dict[str, float] = {}
        self._again: set[str] = set()
        self.can = Abilities()
        self.sent = 0

    # --- views ------------------------------------------------------------------------------------------------------

    def publish(self, uri: str, version: int | None, diagnostics: Sequence[types.Diagnostic]) -> None:
        self.sent += 1
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, list(diagnostics), version))

    def refresh(self) -> None:
        """Asks the client to fetch again the views that it fetches by itself."""
        if self.can.refreshes_lenses:
            self._ask(types.WORKSPACE_CODE_LENS_REFRESH)
        if self.can.refreshes_hints:
            self._ask(types.WORKSPACE_INLAY_HINT_REFRESH)
        if self.can.pulls:
            self._ask(types.WORKSPACE_DIAGNOSTIC_REFRESH)

    def notify(self, method: str, params: Any) -> None:
        self.sent += 1
        self._server.protocol.notify(method, params)

    def show(self, message: str, kind: types.MessageType) -> None:
        logger.info("shown: %s", message)
        self._server.window_show_message(types.ShowMessageParams(kind, message))

    # --- work done --------------------------------------------------------------------------------------------------

    async def begin_progress(self, title: str) -> str | None:
        """A token for a progress bar; None if the client does not want to show one."""
        token = f"mugraph-{uuid.uuid4()}"
        try:
            await self._server.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
        except Exception as error:
            logger.info("no progress: %s", error)
            return None
        self._server.work_done_progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=True))
        return token

    def report_progress(self, token: str, message: str, percentage: int | None) -> None:
        value = types.WorkDoneProgressReport(message=message, percentage=percentage)
        self._server.work_done_progress.report(token, value)

    def end_progress(self, token: str, message: str) -> None:
        self._server.work_done_progress.end(token, types.WorkDoneProgressEnd(message=message or None))
        self._server.work_done_progress.tokens.pop(token, None)  # pyright: ignore[reportUnknownMemberType]

    # --- questions --------------------------------------------------------------------------------------------------

    async def apply(self, edit: types.WorkspaceEdit, label: str) -> str | None:
        """Has the client apply an edit. The answer is why it was not applied; None if it was."""
        params = types.ApplyWorkspaceEditParams(edit, label)
        result = await self._server.workspace_apply_edit_async(params)
        return None if result.applied else result.failure_reason or "the editor did not apply the change"

    async def configuration(self, scopes: Sequence[str | None]) -> list[object]:
        """The client's section `mugraph`, one answer for each scope; None where the client has none."""
        items = [types.ConfigurationItem(scope_uri=scope, section="mugraph") for scope in scopes]
        try:
            found = await self._server.workspace_configuration_async(types.ConfigurationParams(items))
        except Exception as error:
            logger.warning("the client gave no configuration: %s", error)
            return [None] * len(scopes)
        return [*found, *[None] * (len(scopes) - len(found))]

    async def register(self, method: str, options: object | None = None) -> None:
        params = types.RegistrationParams([types.Registration(f"mugraph-{method}", method, options)])
        try:
            await self._server.client_register_capability_async(params)
        except Exception as error:
            logger.info("not registered: %s: %s", method, error)

    async def open_document(self, uri: str) -> bool:
        try:
            result = await self._server.window_show_document_async(types.ShowDocumentParams(uri, take_focus=True))
        except Exception as error:
            logger.info("not shown: %s: %s", uri, error)
            return False
        return result.success

    def _ask(self, method: str) -> None:
        """At most one request of a kind is open. Those that come meanwhile become one more when it has been
        answered."""
        now = time.monotonic()
        if now - self._open.get(method, -1e9) < _UNANSWERED_S:
            self._again.add(method)
            return
        self._open[method] = now
        self.sent += 1
        loop = asyncio.get_running_loop()
        future = self._server.protocol.send_request(method, None)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._answered, method, now))

    def _answered(self, method: str, sent: float) -> None:
        if self._open.get(method) == sent:
            del self._open[method]
            if method in self._again:
                self._again.discard(method)
                self._ask(method)

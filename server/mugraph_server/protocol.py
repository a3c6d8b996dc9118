"""pygls's protocol without what it does to a server that lives long and dies at once.

- every body is answered or logged, whatever is in it; pygls leaves requests it cannot read without an answer
- the documents' messages are handled by plain functions; pygls keeps two futures for every one of them, for ever
- a shutdown cancels a copy of the open requests; pygls walks over them while they change
- errors go to the log; pygls sends them to the client, who may be gone, and reports that failure in turn
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable
from typing import Any, cast

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from mugraph_server.log import logger

STOP_S = 1.2
"""For everything to end when the client asks for it; the process ends by force soon after."""


def converter() -> Converter:
    """pygls's, but what is not typed stays as JSON gave it: its named tuples take seconds on large results."""
    made = default_converter()

    def plain(given: Any, cls: Any) -> Any:
        return cls(**{name: given.get(name) for name in _FIELDS[cls]})

    for cls in _FIELDS:
        made.register_structure_hook(cls, plain)
    return made


_FIELDS: dict[Any, tuple[str, ...]] = {
    JsonRPCRequestMessage: ("id", "method", "jsonrpc", "params"),
    JsonRPCResponseMessage: ("id", "jsonrpc", "result"),
    JsonRPCNotification: ("method", "jsonrpc", "params"),
}


class MugraphProtocol(LanguageServerProtocol):
    """`done` is set when there is nothing more to serve; `status` is then the process's exit status."""

    def __init__(self, server: Any, made: Converter) -> None:
        super().__init__(server, made)
        self.done = asyncio.Event()
        self.status = 1
        self.arrivals = 0
        self._began = False

    # --- what comes in ------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Never raises."""
        self.arrivals += 1
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, JsonRpcParseError("the message is not JSON"))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._refuse(None, JsonRpcInvalidRequest("a message is an object with jsonrpc 2.0"))
            return
        message = cast("dict[str, Any]", message)
        identity, method = message.get("id"), message.get("method")
        asks = "id" in message and "method" in message
        if "method" in message and not isinstance(method, str):
            self._refuse(_valid(identity), JsonRpcInvalidRequest("a method is a string"))
            return
        if "id" in message and _valid(identity) is None:
            if asks:  # an answer without an id (to what we could not read) is answered by nothing
                self._refuse(None, JsonRpcInvalidRequest("an id is a whole number or a string"))
            return
        error = self._untimely(method) if method is not None else None
        if error is not None:
            if asks:
                self._refuse(identity, error)
            return
        try:
            structured = self.structure_message(message)
        except Exception as wrong:
            logger.warning("unreadable message: %s", method or "a response")
            if asks:
                self._refuse(identity, wrong if isinstance(wrong, JsonRpcException) else JsonRpcInvalidParams())
            elif _valid(identity) is not None:
                self._abandon(identity)
            return
        try:
            self.handle_message(structured)
        except Exception:
            logger.exception("a message could not be handled: %s", method or "a response")

    def _untimely(self, method: str) -> JsonRpcException | None:
        if self._shutdown:
            return None if method == types.EXIT else JsonRpcInvalidRequest("the server is shutting down")
        if method == types.INITIALIZE:
            if self._began:
                return JsonRpcInvalidRequest("the server is initialized already")
            self._began = True
        elif not self._began and method != types.EXIT:
            return JsonRpcServerNotInitialized("initialize comes first")
        return None

    def _refuse(self, identity: Any, error: JsonRpcException) -> None:
        response = {"jsonrpc": "2.0", "id": identity, "error": {"code": error.code, "message": error.message}}
        self._send_data(response)

    def _abandon(self, identity: Any) -> None:
        """An answer to a request of ours that cannot be read: whoever waits for it must not wait for ever."""
        future = self._request_futures.get(identity)
        if future is not None and not isinstance(future, asyncio.Future):
            self._request_futures.pop(identity, None)
            future.set_exception(JsonRpcException("the answer could not be read"))

    def _handle_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        future = self._request_futures.get(msg_id)
        if isinstance(future, asyncio.Future):
            logger.warning("a response carries the id of a request to us")  # both directions share pygls's table
            return
        super()._handle_response(msg_id, result, error)

    def _with_utf16(self, result: types.InitializeResult) -> types.InitializeResult:
        """Positions are UTF-16, which every client knows: pygls would take whatever the client names first."""
        result.capabilities.position_encoding = types.PositionEncodingKind.Utf16
        return result

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Any:
        result = yield from super().lsp_initialize(params)
        adjust = getattr(self._server, "adjust_capabilities", None)
        if adjust is not None:
            adjust(result.capabilities)
        return self._with_utf16(result)

    # --- documents: at once, and leaving nothing behind -----------------------------------------------------------

    def _pass(self, method: str, params: Any) -> None:
        handler: Callable[[Any], object] | None = self.fm.features.get(method)
        if handler is not None:
            handler(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._pass(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self._pass(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._pass(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self._pass(types.NOTEBOOK_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        self._pass(types.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._pass(types.NOTEBOOK_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def lsp_workspace__did_change_workspace_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self._pass(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, params)

    @lsp_method(types.SET_TRACE)
    def lsp_set_trace(self, params: types.SetTraceParams) -> None:
        self.trace = params.value

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        self._pass(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, params)

    # --- commands and the end --------------------------------------------------------------------------------------

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> object:
        """One that is under way at the shutdown answers null: the client asked for the end, not for an error."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"there is no command {params.command!r}")
        arguments = list(params.arguments or ())
        try:
            result = handler(*arguments)
            return await result if inspect.isawaitable(result) else result
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # raised by the call itself
                raise JsonRpcInvalidParams(f"wrong arguments for {params.command!r}") from None
            raise
        except asyncio.CancelledError:
            if self._shutdown:
                return None
            raise

    @lsp_method(types.SHUTDOWN)
    async def lsp_shutdown(self, *_: object) -> None:
        """Everything that is open is cancelled and answered, then the engines stop; null comes last."""
        self._shutdown = True
        mine = self.msg_id
        opened = [future for key, future in list(self._request_futures.items()) if key != mine]
        for future in opened:
            future.cancel()
        tasks = [future for future in opened if isinstance(future, asyncio.Future)]
        if tasks:
            await asyncio.wait(tasks, timeout=0.2)
        stop: Any = self.fm.features.get(types.SHUTDOWN)
        if stop is not None:
            try:
                await asyncio.wait_for(stop(None), STOP_S)
            except Exception:
                logger.exception("the engines did not stop in time")

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: object) -> None:
        self.lost()

    def lost(self) -> None:
        """The client left, with `exit` or without. 0 only if it had asked for the shutdown."""
        if not self.done.is_set():
            self.status = 0 if self._shutdown else 1
            self.done.set()


def _valid(identity: object) -> int | str | None:
    if isinstance(identity, bool) or identity is None:
        return None
    if isinstance(identity, float):
        return int(identity) if math.isfinite(identity) and identity.is_integer() else None
    return identity if isinstance(identity, int | str) else None

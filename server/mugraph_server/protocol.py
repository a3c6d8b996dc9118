"""pygls's protocol without what it does to a server that lives long and dies at once.

- every body is answered or logged, whatever is in it; pygls leaves requests it cannot read without an answer
- the documents' messages are handled by plain functions; pygls keeps two futures for every one of them, for ever
- a shutdown cancels a copy of the open requests; pygls walks over them while they change
- errors go to the log; pygls sends them to the client, who may be gone, and reports that failure in turn
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Protocol, cast

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
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
CANCELLED_S = 0.2
"""For requests that are open at a shutdown to be answered."""

_OURS = (
    types.SHUTDOWN,
    types.EXIT,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
)
"""Methods that pygls would handle by itself, with a generator and two futures for each message."""


class Host(Protocol):
    """What the server adds to the protocol."""

    def adjust(self, capabilities: types.ServerCapabilities) -> None: ...
    async def stop(self) -> None: ...


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

    def __init__(self, server: LanguageServer, made: Converter) -> None:
        super().__init__(server, made)
        self.done = asyncio.Event()
        self.status = 1
        self.host: Host | None = None
        self._began = False
        builtin = cast("dict[str, object]", self.fm.builtin_features)  # pyright: ignore[reportUnknownMemberType]
        for method in _OURS:
            builtin.pop(method, None)
        features = cast("dict[str, object]", self.fm.features)  # pyright: ignore[reportUnknownMemberType]
        features[types.SHUTDOWN] = self._stop
        features[types.EXIT] = self._leave

    # --- what comes in ------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Never raises."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, JsonRpcParseError("the message is not JSON"))
            return
        if not isinstance(message, dict) or cast("dict[str, Any]", message).get("jsonrpc") != "2.0":
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
        if asks and identity in self._request_futures:
            self._refuse(identity, JsonRpcInvalidRequest("there is an open request with this id"))
            return
        if asks and _is_notification(str(method)):  # pygls would handle it and never answer
            self._refuse(identity, JsonRpcInvalidRequest(f"{method} is a notification, and has no id"))
            return
        error = self._untimely(method) if method is not None else None
        if error is not None:
            if asks:
                self._refuse(identity, error)
            return
        try:
            structured: Any = self.structure_message(message)
        except Exception as wrong:
            logger.warning("unreadable message: %.100s", method or "a response")
            if asks:
                self._refuse(identity, wrong if isinstance(wrong, JsonRpcException) else JsonRpcInvalidParams())
            elif _valid(identity) is not None:
                self._abandon(identity)
            return
        try:
            self.handle_message(structured)
        except Exception:
            logger.exception("a message could not be handled: %.100s", method or "a response")

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
        future: Any = self._request_futures.get(identity)
        if isinstance(future, Future):
            self._request_futures.pop(identity, None)
            future.set_exception(JsonRpcException("the answer could not be read"))

    def _handle_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        future: Any = self._request_futures.get(msg_id)
        if isinstance(future, asyncio.Future):
            logger.warning("a response carries the id of a request to us")  # both directions share pygls's table
            return
        if isinstance(future, Future) and future.cancelled():  # we stopped waiting for it
            self._request_futures.pop(msg_id, None)
            return
        super()._handle_response(msg_id, result, error)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        # Positions are UTF-16, which every client knows: pygls would take whatever the client names first.
        result.capabilities.position_encoding = types.PositionEncodingKind.Utf16
        if self.host is not None:
            self.host.adjust(result.capabilities)
        return result

    # --- the end ------------------------------------------------------------------------------------------------

    async def _stop(self, *_: object) -> None:
        """Everything that is open is cancelled and answered, then the engines stop; null comes last."""
        self._shutdown = True
        mine = self.msg_id
        opened = cast("list[tuple[Any, object]]", list(self._request_futures.items()))
        tasks: list[asyncio.Future[Any]] = []
        for identity, future in opened:
            if identity == mine:
                continue
            if isinstance(future, asyncio.Future):
                tasks.append(cast("asyncio.Future[Any]", future))
            elif isinstance(future, Future):
                cast("Future[Any]", future).cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLED_S)
        if self.host is not None:
            try:
                await asyncio.wait_for(self.host.stop(), STOP_S)
            except Exception:
                logger.exception("not everything stopped in time")

    def _leave(self, *_: object) -> None:
        self.lost()

    @property
    def is_shut_down(self) -> bool:
        return self._shutdown

    def lost(self) -> None:
        """The client left, with `exit` or without. 0 only if it had asked for the shutdown."""
        if not self.done.is_set():
            self.status = 0 if self._shutdown else 1
            self.done.set()


def _is_notification(method: str) -> bool:
    known = cast("tuple[object, ...] | None", types.METHOD_TO_TYPES.get(method))
    return known is not None and known[1] is None


def _valid(identity: object) -> int | str | None:
    if isinstance(identity, bool) or identity is None:
        return None
    if isinstance(identity, float):
        return int(identity) if math.isfinite(identity) and identity.is_integer() else None
    return identity if isinstance(identity, int | str) else None

"""Messages on their way out: the front never waits for a server that is slow to read."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable

from mugraph.protocol.codec import encode
from mugraph.protocol.messages import FromEngine, Progress

_log = logging.getLogger("mugraph.worker")

_WAITING = 256
"""Beyond so many unread messages progress is not worth adding to them."""


class Output:
    def __init__(self, descriptor: int, closed: Callable[[], None]) -> None:
        """closed: called once, when the other side has gone."""
        self._descriptor = descriptor
        self._closed = closed
        self._queue: queue.SimpleQueue[FromEngine] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._sent = self._written = 0
        threading.Thread(target=self._write, name="output", daemon=True).start()

    def send(self, message: FromEngine) -> None:
        if isinstance(message, Progress) and self._queue.qsize() > _WAITING:
            return
        with self._lock:
            self._sent += 1
        self._queue.put(message)

    def flush(self, patience_s: float = 0.5) -> None:
        """Waits until all of it has been written."""
        deadline = time.monotonic() + patience_s
        while self._written < self._sent and time.monotonic() < deadline:
            time.sleep(0.002)

    def _write(self) -> None:
        while True:
            left = memoryview(encode(self._queue.get()))
            try:
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as error:  # the server has gone
                _log.debug("the server cannot be told: %s", error)
                self._closed()
                return
            self._written += 1

"""Messages out of a stream of bytes: `Content-Length: N`, an empty line, N bytes of JSON.

Everything that has arrived is handled in one go, so that a cancellation which is already here takes effect before the
request it cancels is begun.
"""

from __future__ import annotations

import re

_LENGTH = re.compile(rb"^\s*content-length\s*:\s*(\d{1,10})\s*$", re.IGNORECASE | re.MULTILINE)
LONGEST = 256 * 1024 * 1024
_LONGEST_HEADER = 4096


class Framing:
    """Takes bytes and gives the bodies of messages. Bytes that are no header are skipped up to the next header."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        found: list[bytes] = []
        while (body := self._next()) is not None:
            found.append(body)
        return found

    def _next(self) -> bytes | None:
        while self._length is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _LONGEST_HEADER:  # no header is this long: keep what could begin one
                    del self._buffer[:-_LONGEST_HEADER]
                return None
            header = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            match = _last(header)
            if match is not None and match <= LONGEST:
                self._length = match
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return body


def _last(header: bytes) -> int | None:
    lengths = _LENGTH.findall(header)
    return int(lengths[-1]) if lengths else None

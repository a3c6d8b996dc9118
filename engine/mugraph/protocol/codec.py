"""Framing: a message is one line of UTF-8 JSON that begins with `{"type":"`. Any other line is a stray one.

Lines, because what stands between server and engine may add some of its own (a login banner, a shell's warning): they
are told apart, reported, and skipped. Nothing here reads or writes: bytes in, messages out, for threads and asyncio
alike. A reader of lines must allow long ones (asyncio's StreamReader stops at 64 KiB unless told otherwise), so feed
chunks as they come instead: `decoder.feed(await stream.read(65536))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from mugraph.protocol.messages import FromEngine, ToEngine

T = TypeVar("T")

MAX_LINE = 64 * 1024 * 1024
"""Bytes. A longer line is no message: what is read of it is dropped up to its end."""
_BEGIN = b'{"type":"'
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')
_SHOWN = 300
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Unreadable:
    """A line that is no message.

    sentence: what is wrong with it
    id:       of the request it seems to be, so that it can be answered; None where it shows none
    stray:    it does not even look like a message, so it is somebody's print, not an error of the peer
    text:     how it begins
    """

    sentence: str
    id: int | None
    stray: bool
    text: str


def encode(message: ToEngine | FromEngine) -> bytes:
    """The line, its end included."""
    return _encoder.encode(message) + b"\n"


class Decoder(Generic[T]):
    """Bytes as they come, messages as they are complete: `Decoder(FromEngine)` in the server, `Decoder(ToEngine)` in
    the engine."""

    def __init__(self, messages: type[T], max_line: int = MAX_LINE) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(messages)
        self._max = max_line
        self._held = bytearray()
        self._searched = 0
        self._dropping = False

    def feed(self, data: bytes) -> Iterator[T | Unreadable]:
        """Every message, or line that is none, that `data` completes. Never raises for what the bytes are."""
        self._held += data
        while (end := self._held.find(b"\n", self._searched)) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            self._searched = 0
            if self._dropping:
                self._dropping = False
                continue
            yield from self._line(line)
        self._searched = len(self._held)
        if self._searched > self._max:
            if not self._dropping:
                text = bytes(self._held[:_SHOWN]).decode(errors="replace")
                yield Unreadable(f"a line is longer than {self._max} bytes", None, False, text)
            self._dropping = True
            self._held.clear()
            self._searched = 0

    def _line(self, line: bytes) -> Iterator[T | Unreadable]:
        at = line.find(_BEGIN)
        before = line if at < 0 else line[:at]
        if before.strip():
            # A print without a line end stands before a message: both count.
            looks = before.lstrip().startswith((b"{", b"["))
            sentence = 'a message begins with {"type":"' if looks else "a line is no message"
            yield Unreadable(sentence, _id(before) if looks else None, not looks, _text(before))
        if at < 0:
            return
        try:
            yield self._decoder.decode(line[at:])
        except msgspec.DecodeError as error:  # ValidationError is one of them
            yield Unreadable(f"a message cannot be read: {error}", _id(line), False, _text(line[at:]))
        except (UnicodeDecodeError, RecursionError) as error:
            yield Unreadable(f"a message cannot be read: {type(error).__name__}", _id(line), False, _text(line[at:]))


def _id(line: bytes) -> int | None:
    found = _ID.search(line)
    return int(found[1]) if found else None


def _text(line: bytes) -> str:
    return line[:_SHOWN].decode(errors="replace").strip()

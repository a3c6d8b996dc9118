"""A document's text, from the message or from the disk, as bytes and as characters."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from mugraph.protocol.values import Document
from mugraph.recording.runs import Runs
from mugraph.trace.syntax.source import read_source
from mugraph.worker.neighbours import fingerprint


class Unreadable(Exception):
    """One sentence."""


def state_of(document: Document, text: str, runs: Runs, callers: Sequence[Path] = (), *, all_ways: bool = False) -> str:
    """Digest of all that tracing the text depends on. callers: files that may be run to see how they call it. all_ways:
    that it is traced for all of them."""
    path = Path(document.path).absolute()
    around = fingerprint(path, text, callers)
    seen = [repr(sorted(one.items(), key=repr)) for one in (runs.shapes, runs.pictures, runs.shares)]
    parts = (str(path), text, around, *map(str, callers), *seen, repr(runs.ways) if all_ways else "")
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read(document: Document) -> str:
    """The document's text without a byte-order mark. Raises Unreadable."""
    if document.text is not None:
        return document.text.removeprefix("\ufeff")
    path = Path(document.path)
    try:
        return read_source(path)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreadable(f"{path.name} cannot be read: {why}") from None


def as_bytes(text: str) -> bytes:
    """As an editor would save it: in the encoding it declares. Raises Unreadable."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text.encode("utf-8", "surrogatepass")).readline)
        return text.encode(encoding)
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise Unreadable(f"the text cannot be written in the encoding it declares ({error})") from None


def as_text(data: bytes) -> str:
    """The reverse of `as_bytes`."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)

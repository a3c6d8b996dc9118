"""Traces kept between runs. To run the user's module takes seconds; to see that nothing has changed, milliseconds.

A kept trace is used while the file's text, and every file of the user's that ran with it, are what they were. What else
a module may read when it is imported (the environment, data files) is not watched: --no-store traces anew.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.ir.content import digest
from mugraph.ir.region import Trace
from mugraph.store import Store
from mugraph.store.keys import code_digest, versions
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.source import read_source, text_digest

_log = logging.getLogger("mugraph.memory")


def trace_key(
    path: Path,
    text: str,
    qualname: str | None,
    recorded: RecordedShapes | None,
    pictures: Mapping[str, Picture] | None = None,
) -> str:
    """What a trace of this text depends on, its dependencies' texts apart."""
    shapes = {name: dict(arguments) for name, arguments in (recorded or {}).items()}
    where = [str(path.absolute()), str(Path.cwd())]
    seen = sha256(msgspec.json.encode(pictures or {}, order="sorted")).hexdigest()
    return digest("trace", where, text, qualname, shapes, seen, versions(), code_digest(), sys.version)


def recall_trace(store: Store, key: str) -> Trace | None:
    """The trace kept under the key, unless one of the files that ran with it has changed since."""
    document = store.get(key)
    if document is None:
        return None
    try:
        trace = trace_from_json(msgspec.convert(document["trace"], str).encode())
    except (KeyError, msgspec.MsgspecError) as error:
        _log.info("what is stored cannot be read: %s", error)
        return None
    return trace if all(_holds(Path(file), was) for file, was in trace.dependencies.items()) else None


def remember_trace(store: Store, key: str, trace: Trace) -> None:
    """Keeps a trace without errors: what failed once may work the next time."""
    if not trace.errors:
        store.put(key, {"trace": trace_to_json(trace).decode()})


def _holds(file: Path, was: str) -> bool:
    try:
        return text_digest(read_source(file)) == was
    except (OSError, UnicodeDecodeError, SyntaxError):
        return False

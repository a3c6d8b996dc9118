"""Traces kept between runs. To run the user's module takes seconds; to see that nothing has changed, milliseconds.

A kept trace is used while the file's text, and every file of the user's that ran with it, are what they were. What else
a module may read when it is imported (the environment, data files) is not watched: --no-store traces anew.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.ir.content import digest
from mugraph.ir.region import Trace
from mugraph.search.topologies.limits import never
from mugraph.store import Store
from mugraph.store.keys import code_digest, versions
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.callers import Callers
from mugraph.trace.syntax.source import read_source, text_digest
from mugraph.trace.tracer import callers_for, trace_file

_Recorded = RecordedShapes | None
_log = logging.getLogger("mugraph.memory")


def _nothing() -> None:
    pass


def traced(
    path: Path,
    *,
    source: str | None,
    qualname: str | None = None,
    recorded_shapes: _Recorded = None,
    pictures: Mapping[str, Picture] | None = None,
    callers: Callers | None = None,
    timeout_s: float,
    store: Store | None,
    cancelled: Callable[[], bool] = never,
    beginning: Callable[[], None] = _nothing,
) -> Trace:
    """The trace that the store has, else a new one, which it keeps. Arguments as of `trace_file`.

    cancelled: the user's code may have been killed, and its trace is not kept
    beginning: called before a new one is made
    """
    key = None
    if store is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError, SyntaxError):  # tracing says what is wrong with the file
            text = read_source(path) if source is None else source
            if callers is None:
                callers = callers_for(path, text, qualname=qualname, recorded_shapes=recorded_shapes, pictures=pictures)
            key = _key(path, text, qualname, recorded_shapes, pictures, callers)
            known = _recall(store, key)
            if known is not None:
                return known
    beginning()
    trace = trace_file(
        path,
        source=source,
        qualname=qualname,
        recorded_shapes=recorded_shapes,
        pictures=pictures,
        callers=callers,
        timeout_s=timeout_s,
    )
    if store is not None and key is not None and not cancelled():
        _remember(store, key, trace)
    return trace


def _key(
    path: Path,
    text: str,
    qualname: str | None,
    recorded: _Recorded,
    pictures: Mapping[str, Picture] | None,
    callers: Callers,
) -> str:
    """What a trace of this text depends on, its dependencies' texts apart."""
    shapes = {name: dict(arguments) for name, arguments in (recorded or {}).items()}
    where = [str(path.absolute()), str(Path.cwd())]
    seen = sha256(msgspec.json.encode(pictures or {}, order="sorted")).hexdigest()
    called = [callers.each, *((str(one), _digest_of(one)) for one in callers.paths)]
    return digest("trace", where, text, qualname, shapes, seen, called, versions(), code_digest(), sys.version)


def _recall(store: Store, key: str) -> Trace | None:
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


def _remember(store: Store, key: str, trace: Trace) -> None:
    """Keeps a trace without errors: what failed once may work the next time."""
    if not trace.errors:
        store.put(key, {"trace": trace_to_json(trace).decode()})


def _holds(file: Path, was: str) -> bool:
    return _digest_of(file) == was


def _digest_of(file: Path) -> str:
    """Empty where it cannot be read."""
    try:
        return text_digest(read_source(file))
    except (OSError, UnicodeDecodeError, SyntaxError) as error:  # it was deleted, say
        _log.debug("%s is not what it was: %s", file, error)
        return ""

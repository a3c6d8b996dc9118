"""Recordings that are kept: for each source file, the sets of arguments that its functions were called with.

There is one JSON file for each source file, in `recordings` beside the store. The last run that called a function
counts for it; a run of another part of the program leaves it as it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.recording.signatures import fits, signatures
from mugraph.store.place import cache_folder
from mugraph.trace.run.entries import RecordedShapes

_log = logging.getLogger("mugraph.recording")

FORMAT = 1


class Recorded(msgspec.Struct, frozen=True):
    """One set of arguments, as a `# mugraph:` comment writes them; those left to their defaults are not in it.

    init:    of the module's constructor; None where they are not known, or there is none
    opaque:  of arguments that no comment can describe, the type: such a set says what was seen and cannot be used
    devices: where its tensors were
    calls:   how many calls were like this, counted or, for functions called all the time, estimated
    """

    arguments: dict[str, str]
    init: dict[str, str] | None = None
    opaque: dict[str, str] = {}
    devices: list[str] = []
    calls: int = 0


class _File(msgspec.Struct):
    path: str
    functions: dict[str, list[Recorded]]
    format: int = FORMAT


def recorded(path: Path, text: str | None = None) -> dict[str, list[Recorded]]:
    """By function, what was called most often first. Sets that are no arguments of the function as `text` has it now
    are left out; text None: all."""
    try:
        found = msgspec.json.decode(_place(path).read_bytes(), type=_File)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        _log.info("what was recorded of %s cannot be read: %s", path, error)
        return {}
    if found.format != FORMAT:
        return {}
    functions = {name: sorted(sets, key=lambda one: -one.calls) for name, sets in found.functions.items()}
    if text is None:
        return functions
    known = signatures(text)
    fitting = {
        name: [one for one in sets if fits(known, name, {**one.arguments, **one.opaque}, one.init)]
        for name, sets in functions.items()
    }
    return {name: sets for name, sets in fitting.items() if sets}


def recorded_shapes(path: Path, text: str) -> RecordedShapes:
    """For tracing: each function's most frequent arguments that can be written; a module's constructor's as of a
    function `Block.__init__`."""
    shapes: dict[str, Mapping[str, str]] = {}
    for name, sets in recorded(path, text).items():
        usable = next((one for one in sets if not one.opaque), None)
        if usable is None:
            continue
        shapes[name] = usable.arguments
        if usable.init is not None and name.endswith(".forward"):
            shapes[f"{name.removesuffix('.forward')}.__init__"] = usable.init
    return shapes


def keep(path: Path, functions: Mapping[str, Sequence[Recorded]]) -> None:
    """Replaces what was known of these functions. Raises OSError."""
    place = _place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    merged = {**recorded(path), **{name: list(sets) for name, sets in functions.items()}}
    data = msgspec.json.encode(_File(os.path.realpath(path), merged))
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f"{place.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, place)  # a reader sees the old file or the new one
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def together(sets: Iterable[Recorded]) -> list[Recorded]:
    """Equal sets put together: several processes of a program have the same ones."""
    found: dict[tuple[object, ...], Recorded] = {}
    for one in sets:
        key = (repr(one.arguments), repr(one.init), repr(one.opaque), repr(one.devices))
        before = found.get(key)
        found[key] = msgspec.structs.replace(one, calls=one.calls + (before.calls if before else 0))
    return sorted(found.values(), key=lambda one: -one.calls)


def _place(path: Path) -> Path:
    return cache_folder() / "recordings" / f"{sha256(os.path.realpath(path).encode()).hexdigest()[:32]}.json"

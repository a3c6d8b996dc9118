"""Recordings that are kept: for each source file, what its functions were called with, and how long they took.

There is one JSON file for each source file, in `recordings` beside the store. The last run that called a function
counts for it; a run of another part of the program leaves it as it was. What is read here:

    recorded        by function, the sets of arguments with their counts, the one that took longest first
    seen            the same, each with what a picture shows of it
    recorded_shapes for tracing: arguments in words
    pictured        for tracing: calls as they were
    shares          how much of its run each function took
    complaint       one sentence about a recording that cannot be read
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.ir.shares import Share
from mugraph.recording.signatures import fits, signatures
from mugraph.recording.stored import Objects, StoredPicture, whole
from mugraph.store.place import cache_folder
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.shapes import STRIDE

_log = logging.getLogger("mugraph.recording")

FORMAT = 2
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


class BadRecording(Exception):
    """One sentence."""


class Recorded(msgspec.Struct, frozen=True):
    """One set of arguments, as a `# mugraph:` comment writes them; those left to their defaults are not in it.

    init:      of the module's constructor; None where they are not known, or there is none
    opaque:    of arguments that no comment can describe, the type
    devices:   where its tensors were
    calls:     how many calls were like this, counted or, for functions called all the time, estimated
    gradients: whether they were wanted (`torch.is_grad_enabled()`)
    wanted_of: tensors among the arguments that want one
    strides:   of tensors among them that are not contiguous; None where they were not looked at
    seconds:   wall time of these calls
    picture:   one of the calls as it was
    structure: of its module, what it is made of, as a text that only others are compared with
    numbers:   whole numbers among the arguments; None for one of which these calls have many values. Older recordings
               have none
    spans:     of these, the least and the largest value
    """

    arguments: dict[str, str]
    init: dict[str, str] | None = None
    opaque: dict[str, str] = {}
    devices: list[str] = []
    calls: int = 0
    gradients: bool = False
    wanted_of: list[str] = []
    strides: dict[str, list[int]] | None = None
    seconds: float = 0.0
    picture: StoredPicture | None = None
    structure: str = ""
    numbers: dict[str, int | None] = {}
    spans: dict[str, tuple[int, int]] = {}

    @property
    def usable(self) -> bool:
        """Whether it can be traced."""
        return self.picture is not None or not self.opaque


@dataclass(frozen=True)
class Seen:
    """A set of arguments, and a picture that shows it; its_own: or, of another set, that shows the same object."""

    call: Recorded
    picture: Callable[[], Picture | None] = lambda: None
    is_its_own: bool = True


class RecordedFunction(msgspec.Struct, frozen=True):
    """share: of the run; None where nothing was timed. others: calls unlike all that are kept."""

    sets: list[Recorded]
    share: Share | None = None
    others: int = 0


class Recording(msgspec.Struct):
    """Of one source file. objects: what pictures show, by their digest."""

    path: str
    functions: dict[str, RecordedFunction]
    objects: Objects = {}
    format: int = FORMAT


class _Head(msgspec.Struct):
    format: int


class _First(msgspec.Struct):
    """Format 1, which had neither pictures nor times."""

    path: str
    functions: dict[str, list[Recorded]]


def read(path: Path) -> Recording | None:
    """None where nothing was recorded. Raises BadRecording."""
    again = "record it again with: mugraph record -- COMMAND"
    try:
        data = _place(path).read_bytes()
        head = msgspec.json.decode(data, type=_Head)
        if head.format == 1:
            first = msgspec.json.decode(data, type=_First)
            return Recording(first.path, {name: RecordedFunction(sets) for name, sets in first.functions.items()})
        if head.format == FORMAT:
            return msgspec.json.decode(data, type=Recording)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadRecording(f"what was recorded of {path} cannot be read ({error.strerror or error})") from None
    except (msgspec.MsgspecError, RecursionError):
        raise BadRecording(f"what was recorded of {path} is damaged; {again}") from None
    raise BadRecording(f"what was recorded of {path} has the format of another version of mugraph; {again}")


def complaint(path: Path) -> str | None:
    """One sentence about a recording that is there and cannot be read."""
    try:
        recording = read(path)
        if recording is not None:
            for function in recording.functions.values():
                for one in function.sets:
                    if one.picture is not None:
                        _picture(path, recording, one.picture)
    except BadRecording as error:
        return str(error)
    return None


def recorded(path: Path, text: str | None = None) -> dict[str, list[Recorded]]:
    """By function, what took longest first. Sets that are no arguments of the function as `text` has it now are left
    out; text None: all."""
    return {name: function.sets for name, function in fitting(path, text)[1].items()}


def seen(path: Path, text: str) -> dict[str, list[Seen]]:
    """By function, the sets of arguments, what took longest first, and what pictures show of them."""
    recording, functions = fitting(path, text)
    if recording is None:
        return {}
    kept = recording

    def reader(stored: StoredPicture | None) -> Callable[[], Picture | None]:
        @cache
        def read_it() -> Picture | None:
            if stored is None:
                return None
            try:
                return _picture(path, kept, stored)
            except BadRecording as error:
                _log.info("%s", error)
                return None

        return read_it

    found: dict[str, list[Seen]] = {}
    for name, function in functions.items():
        of_another = reader(next((one.picture for one in function.sets if one.picture is not None), None))
        found[name] = [
            Seen(one, reader(one.picture) if one.picture is not None else of_another, one.picture is not None)
            for one in function.sets
        ]
    return found


def recorded_shapes(path: Path, text: str) -> RecordedShapes:
    """For tracing: of each function the arguments that took longest and can be written; a module's constructor's as of
    a function `Block.__init__`."""
    recording, functions = fitting(path, text)
    sets = {name: function.sets for name, function in functions.items()}
    return for_tracing(path, recording, sets)[0] if recording is not None else {}


def pictured(path: Path, text: str) -> dict[str, Picture]:
    """For tracing: of each function the call that took longest, if it was pictured."""
    recording, functions = fitting(path, text)
    sets = {name: function.sets for name, function in functions.items()}
    return for_tracing(path, recording, sets)[1] if recording is not None else {}


def for_tracing(
    path: Path, recording: Recording, functions: Mapping[str, Sequence[Recorded]]
) -> tuple[RecordedShapes, dict[str, Picture]]:
    """As `recorded_shapes` and `pictured`. functions: some of the recording's, with the sets to choose from"""
    shapes: dict[str, Mapping[str, str]] = {}
    pictures: dict[str, Picture] = {}
    for name, sets in functions.items():
        usable = _longest(sets)
        if usable is None:
            continue
        if not usable.opaque:
            shapes[name] = _as_laid(usable)
            if usable.init is not None and name.endswith(".forward"):
                shapes[f"{name.removesuffix('.forward')}.__init__"] = usable.init
        if usable.picture is not None:
            try:
                picture = _picture(path, recording, usable.picture)
                pictures[name] = msgspec.structs.replace(picture, same=_same_numbers(recording, name))
            except BadRecording as error:
                _log.info("%s", error)
    return shapes, pictures


def _same_numbers(recording: Recording, function: str) -> tuple[str, ...]:
    """Numbers that all of several calls were given."""
    of_function = recording.functions[function]
    if sum(one.calls for one in of_function.sets) + of_function.others < 2:
        return ()
    first, *rest = [one.arguments for one in of_function.sets]
    alike = (name for name, text in first.items() if all(other.get(name) == text for other in rest))
    varied = {name for one in of_function.sets for name, number in one.numbers.items() if number is None}
    return tuple(name for name in alike if _NUMBER.fullmatch(first[name]) and name not in varied)


def _as_laid(call: Recorded) -> dict[str, str]:
    """Its arguments, those that do not lie row by row with their strides."""
    strides = call.strides or {}
    laid = {name: f"{call.arguments[name]}.{STRIDE}({', '.join(map(str, of))})" for name, of in strides.items()}
    return {name: laid.get(name, text) for name, text in call.arguments.items()}


def shares(path: Path, text: str | None = None) -> dict[str, Share]:
    """By function, how much of the run it took."""
    return {name: one.share for name, one in fitting(path, text)[1].items() if one.share is not None}


def keep(path: Path, recording: Recording) -> None:
    """Replaces what was known of the recording's functions. Raises OSError."""
    place = _place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        before = read(path)
    except BadRecording:
        before = None
    functions = {**(before.functions if before is not None else {}), **recording.functions}
    objects = {**(before.objects if before is not None else {}), **recording.objects}
    used = {one.picture.object for each in functions.values() for one in each.sets if one.picture is not None}
    data = msgspec.json.encode(
        Recording(os.path.realpath(path), functions, {name: one for name, one in objects.items() if name in used})
    )
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
        words = (
            one.arguments,
            one.init,
            one.opaque,
            one.devices,
            one.gradients,
            one.wanted_of,
            one.strides,
            one.structure,
            one.numbers,
        )
        key = tuple(map(repr, words))
        before = found.get(key, msgspec.structs.replace(one, calls=0, seconds=0.0))
        picture = before.picture or one.picture
        calls, seconds = before.calls + one.calls, before.seconds + one.seconds
        spans = {
            name: (min(least, before.spans[name][0]), max(largest, before.spans[name][1]))
            for name, (least, largest) in one.spans.items()
            if name in before.spans
        }
        found[key] = msgspec.structs.replace(one, calls=calls, seconds=seconds, picture=picture, spans=spans)
    return ordered(found.values())


def ordered(sets: Iterable[Recorded]) -> list[Recorded]:
    return sorted(sets, key=lambda one: (-one.seconds, -one.calls))


def _longest(sets: Sequence[Recorded]) -> Recorded | None:
    """Of those that can be traced the first; a module of which neither a picture nor the constructor's arguments are
    known could not be built, and comes last."""
    usable = [one for one in sets if one.usable]
    built = (one for one in usable if one.picture is not None or one.init is not None or not one.structure)
    return next(built, usable[0] if usable else None)


def fitting(path: Path, text: str | None) -> tuple[Recording | None, dict[str, RecordedFunction]]:
    """The recording, and its functions with the sets that are arguments of them as `text` has them now; None: all."""
    try:
        recording = read(path)
    except BadRecording as error:
        _log.info("%s", error)
        return None, {}
    if recording is None:
        return None, {}
    known = signatures(text) if text is not None else {}
    found: dict[str, RecordedFunction] = {}
    for name, function in recording.functions.items():
        sets: Sequence[Recorded] = function.sets
        if text is not None:
            sets = [one for one in sets if fits(known, name, {**one.arguments, **one.opaque}, one.init)]
        if sets:
            found[name] = msgspec.structs.replace(function, sets=ordered(sets))
    return recording, found


def _picture(path: Path, recording: Recording, stored: StoredPicture) -> Picture:
    try:
        return whole(stored, recording.objects)
    except (msgspec.MsgspecError, KeyError, RecursionError):
        again = "record it again with: mugraph record -- COMMAND"
        raise BadRecording(f"what was recorded of {path} is damaged; {again}") from None


def _place(path: Path) -> Path:
    return cache_folder() / "recordings" / f"{sha256(os.path.realpath(path).encode()).hexdigest()[:32]}.json"

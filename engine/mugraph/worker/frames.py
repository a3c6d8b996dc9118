"""What the engine's front and its runner say to each other: pickled values behind their length, over the runner's
standard input and output.

Both ends are this package in the same environment; nothing from outside is ever unpickled.
"""

from __future__ import annotations

import logging
import os
import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.events import Event
from mugraph.ir.region import Range, Trace
from mugraph.options import Options
from mugraph.protocol.values import Document
from mugraph.recording.ways import Way
from mugraph.tune.device import Device

_log = logging.getLogger("mugraph.worker")

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class TraceFile:
    """Trace the document. Answer: Unchanged, or Tracing and TracedFile; then Ended.

    recorded: use what was recorded of its functions. all_ways: trace them for every way in which they were called; that
    which took longest is enough to begin with. known: state of the text whose trace the front has
    """

    job: int
    document: Document
    recorded: bool
    timeout_s: float
    known: str | None = None
    all_ways: bool = False


@dataclass(frozen=True)
class SearchTrace:
    """Search the trace's regions. ways: of its regions, as in TracedFile. taken: names that kernels of the file have
    already. again: what the store has does not count. text: of the document, to time what it will call.
    Answer: Happened*, Ended."""

    job: int
    trace: Trace
    options: Options
    ways: dict[int, Way] = field(default_factory=dict[int, Way])
    taken: tuple[str, ...] = ()
    again: bool = False
    text: str | None = None


@dataclass(frozen=True)
class Stop:
    """End what runs, if it is this job; Ended follows."""

    job: int


Order = TraceFile | SearchTrace | Stop


@dataclass(frozen=True)
class RunnerReady:
    device: Device
    seconds: float


@dataclass(frozen=True)
class Unchanged:
    """The document is as the front knows it."""

    job: int


@dataclass(frozen=True)
class Tracing:
    job: int


@dataclass(frozen=True)
class TracedFile:
    """text, state: what was traced. ways: by region, where it is not of the way that took longest. heads: function ->
    where its `def` stands. applied: positions of regions in code that kernels replace already. names: of PyTorch's
    functions, where they have become known: the front writes kernel modules, and never imports PyTorch."""

    job: int
    text: str
    state: str
    trace: Trace
    ways: dict[int, Way]
    heads: dict[str, Range]
    applied: frozenset[int]
    seconds: float
    names: Mapping[str, frozenset[str]] | None = None


@dataclass(frozen=True)
class Happened:
    job: int
    event: Event


@dataclass(frozen=True)
class Ended:
    """error: one sentence, where the job failed as a whole; refused: by what it was given. notices: of the store."""

    job: int
    error: str | None = None
    refused: bool = False
    stopped: bool = False
    notices: tuple[str, ...] = field(default=())


Word = RunnerReady | Unchanged | Tracing | TracedFile | Happened | Ended


def write(descriptor: int, value: object) -> None:
    """Raises OSError when the other side has gone."""
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    left = memoryview(_HEAD.pack(len(body)) + body)
    while left:
        left = left[os.write(descriptor, left) :]


def read(descriptor: int) -> object | None:
    """The next value; None when the other side has gone."""
    head = _exactly(descriptor, _HEAD.size)
    if head is None:
        return None
    body = _exactly(descriptor, _HEAD.unpack(head)[0])
    return None if body is None else pickle.loads(body)


def _exactly(descriptor: int, count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        try:
            chunk = os.read(descriptor, min(1 << 20, count - len(found)))
        except OSError as error:  # the other side has gone: an end like any other
            _log.debug("the other process cannot be heard: %s", error)
            return None
        if not chunk:
            return None
        found += chunk
    return bytes(found)

"""What the engine's front and its runner say to each other: pickled values behind their length, over the runner's
standard input and output.

Both ends are this package in the same environment; nothing from outside is ever unpickled.
"""

from __future__ import annotations

import os
import pickle
import struct
from dataclasses import dataclass, field
from pathlib import Path

from mugraph.events import Event
from mugraph.pipeline import Options
from mugraph.trace.entries import RecordedShapes
from mugraph.trace.region import Range, Trace
from mugraph.tune.device import Device

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class TraceFile:
    """Trace this text. Answer: Traced, Ended."""

    job: int
    path: Path
    text: str
    recorded: RecordedShapes
    timeout_s: float


@dataclass(frozen=True)
class SearchTrace:
    """Search the trace's regions. taken: names that kernels of the file have already. again: what the store has does
    not count. Answer: Happened*, Ended."""

    job: int
    trace: Trace
    options: Options
    taken: tuple[str, ...] = ()
    again: bool = False


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
class TracedFile:
    """heads: function -> where its `def` stands. applied: positions of regions in code that kernels replace already."""

    job: int
    trace: Trace
    heads: dict[str, Range]
    applied: frozenset[int]
    seconds: float


@dataclass(frozen=True)
class Happened:
    job: int
    event: Event


@dataclass(frozen=True)
class Ended:
    """error: one sentence, where the job failed as a whole. notices: of the store."""

    job: int
    error: str | None = None
    stopped: bool = False
    notices: tuple[str, ...] = field(default=())


Word = RunnerReady | TracedFile | Happened | Ended


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
        except OSError:
            return None
        if not chunk:
            return None
        found += chunk
    return bytes(found)

"""Runs the user's program with the recorder in it, and keeps what it has seen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import msgspec

from mugraph.ir.shares import Share
from mugraph.recording import inside
from mugraph.recording.inside.mugraph_eager.install import WANTED
from mugraph.recording.inside.mugraph_recorder.install import FOLDER
from mugraph.recording.memory import Recorded, RecordedFunction, Recording, keep, together
from mugraph.recording.stored import Objects, apart
from mugraph.trace.picture import Picture


class CannotRun(Exception):
    """The command cannot be started; one sentence."""


@dataclass(frozen=True)
class Run:
    """status: of the program, as a shell has it (128 and the signal's number for one that was killed).

    files:    what was recorded of each source file
    problems: one sentence each
    """

    status: int
    files: dict[Path, Recording] = field(default_factory=dict[Path, Recording])
    problems: tuple[str, ...] = ()


class _Line(msgspec.Struct, tag_field="is", tag="set"):
    """As the spool writes it. set: a number, -1 for calls unlike all that are kept. seconds: total, own, on the
    device, of how many calls that is, and of the run. picture: with the line that first has it."""

    file: str
    function: str
    set: int
    arguments: dict[str, str]
    opaque: dict[str, str]
    devices: list[str]
    init: dict[str, str] | None
    calls: int
    gradients: bool
    wanted_of: list[str]
    strides: dict[str, list[int]]
    seconds: tuple[float, float, float, int, float]
    structure: str = ""
    numbers: dict[str, int | None] = {}
    spans: dict[str, tuple[int, int]] = {}
    picture: Picture | None = None


class _PassedOver(msgspec.Struct, tag_field="is", tag="passed"):
    """over: file, function, what, why, how often"""

    over: list[tuple[str, str, str, str, int]]


def record(command: Sequence[str]) -> Run:
    """Runs the command, which keeps its standard streams, its arguments and its status. Raises CannotRun."""
    with tempfile.TemporaryDirectory(prefix="mugraph-record-", ignore_cleanup_errors=True) as spool:
        status = run_command(command, {**os.environ, **environment(FOLDER, spool)})
        files, problems = _read(Path(spool))
    for path, recording in files.items():
        try:
            keep(path, recording)
        except OSError as error:
            problems.append(f"what was seen of {path} cannot be kept: {error.strerror or error}")
    return Run(status, files, tuple(problems))


def _said(passed: Mapping[tuple[str, str, str, str], int]) -> list[str]:
    """One sentence for each thing that the recorder passed over."""
    found: list[str] = []
    for (file, function, what, why), times in passed.items():
        place = f"{os.path.relpath(file)}: {function}: " if file else ""
        often = f", {times} times" if times > 1 else ""
        found.append(f"{place}{what} could not be kept{often}: {why}")
    return found


def environment(variable: str, spool: str) -> Mapping[str, str]:
    """What looks on first on the path, for this Python and those it starts; variable: where it finds its folder. Code
    runs as it is written, not compiled: torch.compile would keep functions from being called."""
    paths = [str(Path(inside.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {variable: spool, "PYTHONPATH": os.pathsep.join(paths), WANTED: "1"}


def run_command(command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> int:
    """Its status, as a shell has it. stdout: a file descriptor for its standard output. Raises CannotRun."""
    if shutil.which(command[0]) is None:
        raise CannotRun(f"there is no command {command[0]}")
    child: subprocess.Popen[bytes] | None = None
    asked: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        asked.append(number)
        if child is not None and number != signal.SIGINT:  # the terminal sends that one to both
            child.send_signal(number)

    signals = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, forward) for number in signals}
    try:
        child = subprocess.Popen(command, env=dict(environment), stdout=stdout)
        if asked and asked[-1] != signal.SIGINT:
            child.send_signal(asked[-1])
        status = child.wait()
    except OSError as error:
        raise CannotRun(f"{command[0]} cannot be started: {error.strerror or error}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _read(spool: Path) -> tuple[dict[Path, Recording], list[str]]:
    """What was seen, by file and function, and what could not be kept. Each process counts with what it wrote last;
    equal sets of several processes are put together."""
    latest: dict[tuple[str, str, str, int], _Line] = {}
    passed: dict[str, _PassedOver] = {}
    unread = Counter[str]()
    for file in sorted(spool.glob("*.jsonl")):
        for line in _lines(file, unread):
            if isinstance(line, _PassedOver):
                passed[file.name] = line
                continue
            key = file.name, line.file, line.function, line.set
            if line.picture is None and key in latest:
                line.picture = latest[key].picture
            latest[key] = line
    by_function: dict[tuple[Path, str], dict[str, list[_Line]]] = {}
    for (process, path, function, _), line in latest.items():
        if line.calls:  # a child made by fork repeats what its parent has seen
            by_function.setdefault((Path(path), function), {}).setdefault(process, []).append(line)
    found: dict[Path, Recording] = {}
    for (path, function), processes in by_function.items():
        recording = found.setdefault(path, Recording(os.path.realpath(path), {}))
        recording.functions[function] = _function(list(processes.values()), recording.objects)
    over = Counter[tuple[str, str, str, str]]()
    for one in passed.values():
        for *what, times in one.over:
            over[what[0], what[1], what[2], what[3]] += times
    for why, lines in unread.items():
        over["", "", "a line of what was seen", why] += lines
    return found, _said(over)


def _function(processes: list[list[_Line]], objects: Objects) -> RecordedFunction:
    """processes: the lines of each process that called it"""
    lines = [line for process in processes for line in process]
    sets = [
        Recorded(
            line.arguments,
            line.init,
            line.opaque,
            line.devices,
            line.calls,
            line.gradients,
            line.wanted_of,
            line.strides,
            line.seconds[0],
            apart(line.picture, objects) if line.picture is not None else None,
            line.structure,
            line.numbers,
            line.spans,
        )
        for line in lines
        if line.set >= 0
    ]
    run = sum(max(line.seconds[4] for line in process) for process in processes)
    others = sum(line.calls for line in lines if line.set < 0)
    return RecordedFunction(together(sets), _share(lines, run), others)


def _share(lines: list[_Line], run: float) -> Share | None:
    """Time on the device is known of some calls, and stands for all."""
    if run <= 0:
        return None
    calls = sum(line.calls for line in lines)
    total, own, device = (sum(line.seconds[at] for line in lines) for at in range(3))
    timed = sum(line.seconds[3] for line in lines)
    on_device = min(1.0, device / timed * calls / run) if timed else None
    return Share(min(1.0, total / run), min(1.0, own / run), on_device, calls)


def _lines(file: Path, unread: Counter[str]) -> Iterator[_Line | _PassedOver]:
    """unread: is told why whole lines cannot be read. The last one may be cut off by the program's death."""
    decoder = msgspec.json.Decoder(_Line | _PassedOver)
    *whole, _ = file.read_bytes().split(b"\n")
    for text in whole:
        try:
            yield decoder.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            unread[f"{type(error).__name__}: {error}"] += 1

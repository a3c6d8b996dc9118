"""`mugraph record -- COMMAND`: runs a program once and remembers what its functions were called with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mugraph.commands.common import WrongUsage, say_error
from mugraph.ir.shares import percent
from mugraph.recording.launch import CannotRun, Run
from mugraph.recording.launch import record as run_recorded
from mugraph.recording.memory import RecordedFunction, Recording

_MOST_UNKEPT = 4


def record(command: Sequence[str]) -> int:
    """The program's own status. Its standard output stays its own: what was seen is said on standard error."""
    if not command:
        raise WrongUsage("what shall be run? write, for example: mugraph record -- python train.py")
    try:
        run = run_recorded(command)
    except CannotRun as error:
        raise WrongUsage(str(error)) from None
    for sentence in (*_summary(run), *run.problems):
        say_error(sentence)
    return run.status


def _summary(run: Run) -> list[str]:
    if not run.files:
        return ["no function of your own code was called with tensors by a Python that could be watched"]
    ordered = sorted(run.files.items(), key=lambda item: (-max(map(_part, item[1].functions.values())), item[0]))
    return [sentence for path, recording in ordered for sentence in _of_file(path, recording)]


def _part(function: RecordedFunction) -> float:
    return function.share.part if function.share is not None else 0.0


def _of_file(path: Path, recording: Recording) -> list[str]:
    """What takes most of the run first."""
    functions = sorted(recording.functions.items(), key=lambda item: -_part(item[1]))
    seen = [f"{name}{_about(function)}" for name, function in functions if any(one.usable for one in function.sets)]
    cannot = [
        f"{name} ({', '.join(f'{argument} is a {kind}' for argument, kind in function.sets[0].opaque.items())})"
        for name, function in functions
        if function.sets and not any(one.usable for one in function.sets)
    ]
    said = f"recorded {', '.join(seen)}" if seen else "nothing that can be used was recorded"
    unsaid = f"; cannot be described: {', '.join(cannot)}" if cannot else ""
    sentences = [f"{_short(path)}: {said}{unsaid}"]
    lost = {one: None for _, function in functions for one in _unkept(function)}
    if lost:
        more = f" and {len(lost) - _MOST_UNKEPT} more" if len(lost) > _MOST_UNKEPT else ""
        sentences.append(f"{_short(path)}: not kept: {', '.join(list(lost)[:_MOST_UNKEPT])}{more}")
    return sentences


def _unkept(function: RecordedFunction) -> list[str]:
    return [what for one in function.sets if one.picture is not None for what in one.picture.unkept]


def _about(function: RecordedFunction) -> str:
    sets = len(function.sets)
    said = f" with {sets} sets of shapes" if sets > 1 else ""
    return f"{said} ({percent(function.share.part)} of the run)" if function.share is not None else said


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative

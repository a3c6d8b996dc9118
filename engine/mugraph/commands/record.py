"""`mugraph record -- COMMAND`: runs a program once and remembers the shapes its functions were called with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mugraph.commands.common import WrongUsage, say_error
from mugraph.recording.launch import CannotRun, Functions, Run
from mugraph.recording.launch import record as run_recorded


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
    return [_of_file(path, functions) for path, functions in sorted(run.files.items())]


def _of_file(path: Path, functions: Functions) -> str:
    usable = {name: [one for one in sets if not one.opaque] for name, sets in functions.items()}
    seen = ", ".join(f"{name}{_times(len(sets))}" for name, sets in usable.items() if sets)
    cannot = [
        f"{name} ({', '.join(f'{argument} is a {kind}' for argument, kind in functions[name][0].opaque.items())})"
        for name, sets in usable.items()
        if not sets and functions[name]
    ]
    said = f"recorded {seen}" if seen else "nothing that can be used was recorded"
    unsaid = f"; cannot be described: {', '.join(cannot)}" if cannot else ""
    return f"{_short(path)}: {said}{unsaid}"


def _times(sets: int) -> str:
    return f" with {sets} sets of shapes" if sets > 1 else ""


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative

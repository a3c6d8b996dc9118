"""Which command starts the engine: the setting, else the editor's interpreter, else the server's own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.protocol.settings import Settings

MODULE = ("-m", "mugraph.worker")


@dataclass(frozen=True)
class Command:
    """interpreter: the Python it runs, where that is known; chosen_by: for the messages about it."""

    arguments: tuple[str, ...]
    chosen_by: str
    interpreter: str | None

    @property
    def name(self) -> str:
        return self.interpreter or " ".join(self.arguments)

    def missing(self) -> str | None:
        """Why the command cannot be started, in a sentence that names it; None if it can."""
        first = self.arguments[0]
        if shutil.which(os.path.expanduser(first)) is not None:
            return None
        what = "the Python interpreter" if self.interpreter else "the engine's command"
        where = "does not exist" if not Path(first).exists() else "cannot be run"
        return f"{what} {first} ({self.chosen_by}) {where}; choose another interpreter, or set mugraph.engine.command"


def choose(settings: Settings) -> Command:
    if settings.engine_command:
        first = os.path.expanduser(settings.engine_command[0])
        return Command((first, *settings.engine_command[1:]), "from the setting mugraph.engine.command", None)
    if settings.interpreter:
        python = os.path.expanduser(settings.interpreter)
        return Command((python, *MODULE), "selected in the editor", python)
    return Command((sys.executable, *MODULE), "the server's own", sys.executable)


def explain(error: Sequence[str], command: Command) -> str | None:
    """Why an engine ended before it was ready, in a sentence, if its last words tell; None if they do not."""
    last = "\n".join(error)
    if "No module named 'mugraph" in last or "No module named mugraph" in last:
        python = command.interpreter or "the engine's Python"
        return (
            f"{python} has no mugraph; install it there (python -m pip install mugraph) or choose another interpreter"
        )
    named = [line for line in error if line.startswith("mugraph: ") and " is not installed in " in line]
    if named:
        return named[-1].removeprefix("mugraph: ")
    if "No module named" in last:
        missing = last.rpartition("No module named")[2].strip().splitlines()[0].strip(" '\"")
        return f"{command.name} lacks the Python package {missing}; install mugraph there with its dependencies"
    return None

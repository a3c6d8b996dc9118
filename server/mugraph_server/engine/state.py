"""What the user is told about an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["exited", "starting", "running", "restarting", "errored"]


@dataclass(frozen=True)
class EngineStatus:
    """exited: not running, and nothing is wrong. errored: it does not run until the user does something; message says
    what is wrong and names the interpreter or command. device: by name. target: what kernels are made for when the
    settings leave that to the engine."""

    state: State
    message: str = ""
    command: str = ""
    python: str = ""
    device: str = ""
    target: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    pid: int | None = None
    restarts: int = 0
    crashes: tuple[str, ...] = ()


class EngineGone(Exception):
    """The engine ended, or cannot be started. The text is a sentence for the user."""


class EngineRefused(Exception):
    """The engine answered `Failed`. The text is its sentence."""

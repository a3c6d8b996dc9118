"""An executor by its name: inline, processes, processes:N, ray, ray://HOST:PORT."""

from __future__ import annotations

from mugraph.executors.executor import CannotExecute, Executor
from mugraph.executors.inline import Inline
from mugraph.executors.processes import Processes

NAMES = "inline, processes, processes:N, ray, ray://HOST:PORT"


def choose(name: str) -> Executor:
    """Raises CannotExecute: no such executor, or it cannot be had here."""
    kind, _, rest = name.partition(":")
    if name == "inline":
        return Inline()
    if name == "processes":
        return Processes()
    if kind == "processes" and rest.isdecimal() and int(rest) > 0:
        return Processes(int(rest))
    if name == "ray" or name.startswith("ray://"):
        from mugraph.executors.on_ray import OnRay

        return OnRay(name if name != "ray" else None)
    raise CannotExecute(f"there is no executor {name!r}; there are {NAMES}")

"""What a worker process is asked. The classes are not in child.py: a process that runs it as its main program would
have other classes of these names than one that imports it."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.executors.tasks import Task
from mugraph.executors.turns import Order, Start


@dataclass(frozen=True, slots=True)
class Take:
    """Begin this nest under a number. Nothing is answered: what is wrong with it comes with its first turn."""

    number: int
    start: Start


@dataclass(frozen=True, slots=True)
class Turn:
    """Answered by Turned or Wrong."""

    number: int
    order: Order


@dataclass(frozen=True, slots=True)
class Leave:
    """Forget that nest. Nothing is answered."""

    number: int


@dataclass(frozen=True, slots=True)
class Do:
    """Answered by Done or Wrong."""

    task: Task[object]


Request = Take | Turn | Leave | Do

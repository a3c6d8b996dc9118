"""The nests that one worker works on, by number. A worker process and a Ray actor both have one such table."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.executors.tasks import Task
from mugraph.executors.turns import Desk, Order, Start, Turned
from mugraph.search.topologies.limits import NotSearchable


@dataclass(frozen=True, slots=True)
class Wrong:
    """The answer to a turn that failed.

    refused: the search does not cover the program. If not, something is wrong with the search itself.
    """

    sentence: str
    refused: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a task."""

    value: object


class Desks:
    """The caller gives the numbers. Nothing is raised: what is wrong with a nest is the answer to its turns."""

    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._desks: dict[int, Desk] = {}

    def take(self, number: int, start: Start) -> None:
        self._starts[number] = start

    def turn(self, number: int, order: Order) -> Turned | Wrong:
        try:
            if number not in self._desks:
                self._desks[number] = Desk(self._starts[number])
            return self._desks[number].turn(order)
        except NotSearchable as error:
            return Wrong(str(error), refused=True)
        except Exception as error:
            return Wrong(f"{type(error).__name__}: {error}", refused=False)

    def do(self, task: Task[object]) -> Done | Wrong:
        try:
            return Done(task.run())
        except Exception as error:
            return Wrong(f"{type(error).__name__}: {error}", refused=False)

    def leave(self, number: int) -> None:
        self._desks.pop(number, None)
        self._starts.pop(number, None)

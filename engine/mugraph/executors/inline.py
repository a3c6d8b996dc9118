"""In this process, one turn after the other."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from mugraph.executors.tasks import Task
from mugraph.executors.turns import Desk, Order, Start, Turned

T = TypeVar("T")


class InlineSeat:
    def __init__(self, start: Start) -> None:
        self._start = start
        self._desk: Desk | None = None

    def turn(self, order: Order) -> Future[Turned]:
        future: Future[Turned] = Future()
        try:
            self._desk = self._desk or Desk(self._start)
            future.set_result(self._desk.turn(order))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        self._desk = None


class Inline:
    """One worker: the caller."""

    name = "inline"
    workers = 1

    def begin(self) -> None:
        """Nothing to start."""

    def seat(self, start: Start) -> InlineSeat:
        return InlineSeat(start)

    def on_gpus(self) -> None:
        """None: this machine's GPUs belong to the measuring process."""

    def submit(self, task: Task[T]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(task.run())
        except Exception as error:
            future.set_exception(error)
        return future

    def interrupt(self) -> None:
        """Nothing is under way while the caller is here."""

    def close(self) -> None:
        """Nothing to end."""

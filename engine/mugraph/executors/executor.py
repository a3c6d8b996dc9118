"""What every executor offers: a seat for each nest, turns of its work, and tasks; answers are futures."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, TypeVar

from mugraph.executors.desks import Done, Wrong
from mugraph.executors.tasks import Task
from mugraph.executors.turns import Order, Start, Turned
from mugraph.search.topologies.limits import NotSearchable

T = TypeVar("T")


class Lost(Exception):
    """The worker has died, and its nest's work is lost; one sentence. The nest can be begun again elsewhere: the same
    orders lead to the same results."""


class CannotExecute(Exception):
    """No work can be done there at all; one sentence for the user."""


class Seat(Protocol):
    """A nest's place at one worker."""

    def turn(self, order: Order) -> Future[Turned]:
        """At once; turns of one seat are worked on in the order they are asked for. The future raises Lost,
        CannotExecute, or NotSearchable."""
        ...

    def close(self) -> None:
        """The nest is not needed any more. Does not wait, and never raises."""
        ...


class Executor(Protocol):
    """name: as a person chooses it. workers: that can work at the same time, now."""

    name: str

    @property
    def workers(self) -> int: ...

    def on_gpus(self) -> Executor | None:
        """Workers that have a GPU each, where there are any beside this machine's own."""
        ...

    def begin(self) -> None:
        """Start what will be needed, without waiting for it. May be called again. Never raises."""
        ...

    def seat(self, start: Start) -> Seat:
        """At once. Raises CannotExecute."""
        ...

    def submit(self, task: Task[T]) -> Future[T]:
        """At once. Raises CannotExecute; the future raises that, or Lost."""
        ...

    def interrupt(self) -> None:
        """Gives up all work within a fifth of a second; its futures raise Lost. All seats are gone; new ones can be
        taken."""
        ...

    def close(self) -> None:
        """No process is left. Never raises."""
        ...


def result_of(answer: Turned | Wrong) -> Turned:
    """The result of a turn. Raises NotSearchable, CannotExecute."""
    if isinstance(answer, Turned):
        return answer
    if answer.refused:
        raise NotSearchable(answer.sentence)
    raise CannotExecute(f"a worker of the search failed: {answer.sentence}")


def value_of(answer: Done | Wrong) -> object:
    """The result of a task. Raises CannotExecute."""
    if isinstance(answer, Done):
        return answer.value
    raise CannotExecute(f"a worker of the search failed: {answer.sentence}")

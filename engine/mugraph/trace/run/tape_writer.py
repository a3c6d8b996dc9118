"""Writes the tape while the program runs. It knows where the program is."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.trace.run.tape import Activation, Event, Site, Tape
from mugraph.trace.run.values import Values

MAX_EVENTS = 400_000


class TraceTooLong(BaseException):  # so that no `except Exception` of the user's takes it
    """The program made more calls than a trace can hold."""


class TapeWriter:
    """active: whether the program is running. stack: the executions of user functions that have begun and not ended."""

    def __init__(self) -> None:
        self.active = False
        self.stack: list[Activation] = []
        self.begin(keep_copies=False)

    def begin(self, keep_copies: bool) -> None:
        """Begins a new tape. keep_copies: of the numbers of tensors"""
        self.tape = Tape()
        self.values = Values(keep_copies)

    @property
    def watching(self) -> bool:
        """Whether a user function of the program is running."""
        return self.active and bool(self.stack)

    def site(self) -> Site:
        """Where the program is."""
        activation = self.stack[-1]
        return Site(activation.site, activation.index, len(activation.steps) - 1, tuple(activation.nodes))

    def add(self, event: Event) -> None:
        """Raises TraceTooLong."""
        if len(self.tape.events) >= MAX_EVENTS:
            raise TraceTooLong("the program makes too many calls to be traced with these shapes")
        self.tape.events.append(event)
        self.values.now = len(self.tape.events)

    def open(self, node: int, names: Mapping[str, object]) -> None:
        """A user function begins. names: the globals of its module"""
        outer = self.site() if self.stack else None
        activation = Activation(len(self.tape.activations), node, outer, len(self.tape.events))
        activation.globals = names
        self.tape.activations.append(activation)
        self.stack.append(activation)

    def close(self, names: Mapping[str, object]) -> None:
        """The innermost user function ends. names: its locals"""
        activation = self.stack.pop()
        activation.names_at_end = names
        activation.end = len(self.tape.events)

"""Names of results for which the user's code has no call, such as the sum in a softmax, as their kinds make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mugraph.kinds.kind import Kind

_LONGEST = 24
"""A name of more characters is left out of the names that are made of it."""


class Operator(Protocol):
    """An operator of a shared graph; inputs are positions in it."""

    @property
    def kind(self) -> Kind: ...
    @property
    def inputs(self) -> tuple[int, ...]: ...
    @property
    def value(self) -> float: ...
    @property
    def fn(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Term:
    """The operator at a place of a graph, with what it is applied to. names: of the operators before it"""

    place: int
    graph: Sequence[Operator]
    names: Mapping[int, str]

    @property
    def op(self) -> Operator:
        return self.graph[self.place]

    @property
    def kind(self) -> Kind:
        return self.op.kind

    @property
    def operands(self) -> list[Term]:
        return [Term(place, self.graph, self.names) for place in self.op.inputs]

    @property
    def name(self) -> str:
        return self.names[self.place]

    @property
    def constant(self) -> float | None:
        """The number that it is, if the program says one."""
        return self.op.value if self.kind.is_number else None


Title = Callable[[Term], str]


def title_of(term: Term) -> str:
    """A name by what the operator does to what; it need not be unique."""
    title = term.kind.title
    if not isinstance(title, str):
        return title(term)
    title = title.format(fn=term.op.fn)
    return after(term.operands[0].name, title.removeprefix("_")) if title.startswith("_") else title


def after(name: str, suffix: str) -> str:
    return suffix if len(name) > _LONGEST else f"{name}_{suffix}"


def factor_of(term: Term) -> float | None:
    """The constant that its other operand is scaled by; None where there is none."""
    constants = (term.operands[at].constant for at in term.kind.scaled_by)
    return next((constant for constant in constants if constant is not None), None)


def is_square(term: Term) -> bool:
    """The product of a value and itself?"""
    return bool(term.kind.of_itself) and term.op.inputs[0] == term.op.inputs[1]

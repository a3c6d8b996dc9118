"""Names of results that are no call of the user's, such as the sum in a softmax: what kinds make them of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mugraph.kinds.kind import Kind

_LONGEST = 24
"""A name of more characters is left out of the names that are made of it."""


class Term(Protocol):
    """An operator and what it is applied to.

    place:    in its graph: of one operator in two places it is the same
    name:     of its result; an operator that is about to be named has none
    constant: its value, if it is a number that the program says
    """

    @property
    def kind(self) -> Kind: ...
    @property
    def operands(self) -> Sequence[Term]: ...
    @property
    def place(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def constant(self) -> float | None: ...


Title = Callable[[Term], str]


def after(name: str, suffix: str) -> str:
    return suffix if len(name) > _LONGEST else f"{name}_{suffix}"


def factor_of(term: Term) -> float | None:
    """The constant that its other operand is scaled by; None where there is none."""
    constants = (term.operands[at].constant for at in term.kind.scaled_by)
    return next((constant for constant in constants if constant is not None), None)


def is_square(term: Term) -> bool:
    """The product of a value and itself?"""
    return bool(term.kind.of_itself) and term.operands[0].place == term.operands[1].place

"""Names of operators that are no call of the user's: the sum in a softmax, the mean square in a norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mugraph.ir.ops import Kind
from mugraph.kinds.naming import after


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
class _Term:
    """An operator as its kind sees it (mugraph.kinds.naming.Term)."""

    op: Operator
    place: int
    graph: Sequence[Operator]
    titles: Mapping[int, str]

    @property
    def kind(self) -> Kind:
        return self.op.kind

    @property
    def operands(self) -> Sequence[_Term]:
        return [_Term(self.graph[i], i, self.graph, self.titles) for i in self.op.inputs]

    @property
    def name(self) -> str:
        return self.titles[self.place]

    @property
    def constant(self) -> float | None:
        return self.op.value if self.op.kind is Kind.CONST else None


def title_of(place: int, graph: Sequence[Operator], titles: Mapping[int, str]) -> str:
    """A name by what the operator does to what; it need not be unique. titles: of the operators before it."""
    op = graph[place]
    title = op.kind.title
    if not isinstance(title, str):
        return title(_Term(op, place, graph, titles))
    title = title.format(fn=op.fn)
    return after(titles[op.inputs[0]], title.removeprefix("_")) if title.startswith("_") else title

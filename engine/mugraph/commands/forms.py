"""Recognisers of μGraphs that papers name. For showing what a search has found; no part of any search.

A form is written as an expression of the last kernel's output: `div(accum[h](dot[h](_, w)), sqrt(~sum[h](mul(x, x))))`.
Letters without arguments stand for one value each, letters in brackets for one axis each, `_` for any value, `~` for
what follows with constants added, multiplied or divided by on top of it (a scale, an epsilon). ` | ` between whole
expressions: any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.packing import packed

_TOKEN = re.compile(r"[A-Za-z0-9]+|[_~\[\](),]")

Bound = Mapping[str, str]
"""Variable -> value; axis variable, in brackets -> axis."""


@dataclass(frozen=True)
class Form:
    """A named μGraph of one kernel or two.

    output: of the last kernel
    handed: variable of `output` -> what the first kernel stores for it; empty where there is one kernel
    roots:  variable -> square roots its value is made of, at least
    packed: variable whose value has several axes as one dimension, one of which the grid does not have (a Reshape of
            the paper): a matter of schedules as well
    """

    name: str
    output: str
    handed: Mapping[str, str] = field(default_factory=dict[str, str])
    roots: Mapping[str, int] = field(default_factory=dict[str, int])
    packed: str = ""

    def matches(self, kernels: Sequence[BlockGraph], schedules: Sequence[Schedule] = ()) -> bool:
        """kernels: in the order they run; and their schedules, which a form that says `packed` asks for."""
        if len(kernels) != 1 + bool(self.handed) or (self.packed and not schedules):
            return False
        schedule = schedules[0] if schedules else None
        first, last = _Graph(kernels[0], schedule), _Graph(kernels[-1], schedules[-1] if schedules else None)
        return any(
            self._handed(first, last, bound) if self.handed else self._rooted(last, bound)
            for stored in last.stored.values()
            for bound in last.match(stored, parsed(self.output), {})
        )

    def _handed(self, first: _Graph, last: _Graph, bound: Bound) -> bool:
        found: list[Bound] = [{}]
        for variable, pattern in self.handed.items():
            stored = first.stored.get(last.ops[bound[variable]].tensor)
            if stored is None:
                return False
            found = [more for known in found for more in first.match(stored, parsed(pattern), known)]
        return any(self._rooted(first, known) for known in found)

    def _rooted(self, graph: _Graph, bound: Bound) -> bool:
        if self.packed and not graph.is_packed(bound[self.packed]):
            return False
        return all(graph.roots(bound[variable]) >= count for variable, count in self.roots.items())


@dataclass(frozen=True, slots=True)
class Pattern:
    """name: of an operator or a variable; "_", "~" and "|" as above"""

    name: str
    axes: tuple[str, ...] = ()
    args: tuple[Pattern, ...] = ()


def parsed(text: str) -> Pattern:
    """Raises ValueError for what is not a pattern."""
    if " | " in text:
        return Pattern("|", (), tuple(parsed(part) for part in text.split(" | ")))
    tokens = _TOKEN.findall(text)

    def take(expected: str = "") -> str:
        if not tokens or (expected and tokens[0] != expected):
            raise ValueError(f"{text!r} is no pattern: {expected or 'more'} expected before {tokens[:1]}")
        return tokens.pop(0)

    def listed(end: str) -> Iterator[None]:
        take()
        yield
        while tokens and tokens[0] == ",":
            take()
            yield
        take(end)

    def term() -> Pattern:
        name = take()
        if name == "~":
            return Pattern(name, (), (term(),))
        axes = tuple(take() for _ in listed("]")) if tokens and tokens[0] == "[" else ()
        args = tuple(term() for _ in listed(")")) if tokens and tokens[0] == "(" else ()
        return Pattern(name, axes, args)

    pattern = term()
    if tokens:
        raise ValueError(f"{text!r} is no pattern: {tokens[0]!r} after its end")
    return pattern


class _Graph:
    def __init__(self, block: BlockGraph, schedule: Schedule | None = None) -> None:
        self.block, self.schedule = block, schedule
        self.ops: dict[str, Op] = {op.name: op for op in block.ops}
        self.stored = {op.tensor: op.inputs[0] for op in block.ops if op.kind is Kind.STORE}

    def match(self, value: str, pattern: Pattern, bound: Bound) -> Iterator[Bound]:
        """Every way to extend `bound` so that the value is what the pattern says."""
        op = self.ops[value]
        if pattern.name == "_":
            yield bound
        elif pattern.name == "|":
            for one in pattern.args:
                yield from self.match(value, one, bound)
        elif pattern.name == "~":
            yield from self.match(value, pattern.args[0], bound)
            for at in (*op.kind.scaled_by, *op.kind.shifted_by):
                if self.ops[op.inputs[at]].kind is Kind.CONST:
                    yield from self.match(op.inputs[1 - at], pattern, bound)
        elif not pattern.args:
            if bound.get(pattern.name, value) == value:
                yield {**bound, pattern.name: value}
        elif pattern.name == (op.fn or op.kind.name) and len(pattern.args) == len(op.inputs):
            for known in _axes(pattern.axes, op.over, bound):
                orders = (op.inputs, op.inputs[::-1]) if op.kind.commutes else (op.inputs,)
                for inputs in dict.fromkeys(orders):
                    yield from self._all(inputs, pattern.args, known)

    def is_packed(self, value: str) -> bool:
        """Are several axes of a value one dimension, and one of them whole in every block?"""
        if self.schedule is None:
            return False
        grid = {axis for axis, _ in self.schedule.grid}
        axes = set(self.ops[value].axes)
        return any(axes.issuperset(pack) and not grid.issuperset(pack) for pack in packed(self.block, self.schedule))

    def roots(self, value: str) -> int:
        """Square roots among what a value is made of."""
        seen = {value}
        waiting = [value]
        while waiting:
            new = set(self.ops[waiting.pop()].inputs) - seen
            seen |= new
            waiting += new
        return sum(self.ops[name].kind is Kind.SQRT for name in seen)

    def _all(self, values: Sequence[str], patterns: Sequence[Pattern], bound: Bound) -> Iterator[Bound]:
        if not values:
            yield bound
            return
        for known in self.match(values[0], patterns[0], bound):
            yield from self._all(values[1:], patterns[1:], known)


def _axes(wanted: tuple[str, ...], over: tuple[str, ...], bound: Bound) -> Iterator[Bound]:
    """One axis each, in the order written; different variables are different axes."""
    if len(wanted) != len(over):
        return
    known = dict(bound)
    for variable, axis in zip(wanted, over, strict=True):
        taken = {value for key, value in known.items() if key.startswith("[") and key != f"[{variable}]"}
        if known.setdefault(f"[{variable}]", axis) != axis or axis in taken:
            return
    yield known

"""Calls that do the same for each operand of a stack or a concatenation: a unit takes all of them, or none.

One alone gives a unit no program: a stack of a product that is computed in it and of others that are read is no value
with one more axis (ops/algebra/rolled.py). The parts are compared in step, from what is joined back to what all of them
read; views are alike whatever the numbers are that they are taken at. Nothing rests on it but what is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mugraph.ir.calls import Argument, Call, Ref, operands
from mugraph.ops.algebra.registry import entry_for


class Graph(Protocol):
    """Of a region (region_graph.py)."""

    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def producer(self) -> Mapping[int, int]: ...
    def shape_only(self, i: int) -> bool: ...


def parts_of_join(graph: Graph, i: int) -> tuple[frozenset[int], ...]:
    """Of a call that joins alike parts: its parts' calls, those at one place of all parts together. Nothing of any
    other call, and where the parts read nothing but what they do not share."""
    entry = entry_for(graph.calls[i].target)
    joined = operands(graph.calls[i])
    if entry is None or not entry.joins or len(joined) < 2 or len(set(joined)) < len(joined):
        return ()
    found: dict[tuple[int, ...], None] = {}
    todo = [joined]
    shares = False
    while todo:
        values = todo.pop()
        if len(set(values)) == 1:
            shares = True
            continue
        makers = tuple(graph.producer.get(value, -1) for value in values)
        if makers in found:
            continue
        if len(set(makers)) == 1 and makers[0] >= 0:  # one call with several results, as of a split
            shares = True
            found[makers] = None
            continue
        if not _alike(graph, makers, values):
            return ()
        found[makers] = None
        todo += zip(*(operands(graph.calls[maker]) for maker in makers), strict=True)
    return tuple(map(frozenset, found)) if shares else ()


def _alike(graph: Graph, makers: Sequence[int], values: Sequence[int]) -> bool:
    if min(makers) < 0 or len(set(makers)) < len(makers):
        return False
    first, *others = (graph.calls[maker] for maker in makers)
    places = {call.outputs.index(value) for call, value in zip((first, *others), values, strict=True)}
    if len(places) > 1 or any(call.target != first.target for call in others):
        return False
    of = _operand_places(first)
    if any(_operand_places(call) != of for call in others):
        return False
    return graph.shape_only(makers[0]) or all(_numbers(call) == _numbers(first) for call in others)


def _operand_places(call: Call) -> tuple[int, tuple[str, ...]]:
    """How many operands it has, and the names of its keywords."""
    return len(operands(call)), tuple(sorted(call.kwargs))


def _numbers(call: Call) -> tuple[object, ...]:
    """Its arguments without the values."""
    return tuple(map(_plain, call.args)), tuple((name, _plain(call.kwargs[name])) for name in sorted(call.kwargs))


def _plain(argument: Argument) -> object:
    if isinstance(argument, Ref):
        return Ref
    return tuple(map(_plain, argument)) if isinstance(argument, tuple) else argument

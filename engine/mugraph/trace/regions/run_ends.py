"""Where a run of clean statements begins and ends: with statements that make tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from mugraph.trace.regions.executions import Item
from mugraph.trace.regions.gathering import lists_made, lists_written
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Activation, Record


def trimmed(scope: Scope, activation: Activation, items: Sequence[Item]) -> list[Item]:
    """The run without statements at its ends that only read shapes, or only write to a tensor: they are left where they
    are. It may begin with a list that one of its loops appends to."""
    items = list(items)
    loops = [item for item in items if isinstance(item.statement, ast.For)]
    written = {one for loop in loops for one in lists_written(scope.between(activation, loop))}
    while items and not _begins(scope, activation, items[0]):
        if written & lists_made(scope.between(activation, items[0])):
            break
        items.pop(0)
    while items and not _computes(scope, activation, items[-1]):
        items.pop()
    return items


def _begins(scope: Scope, activation: Activation, item: Item) -> bool:
    return _computes(scope, activation, item) and not _takes_part(scope, activation, item)


def _records(scope: Scope, activation: Activation, item: Item) -> Iterator[Record]:
    """Of what it makes."""
    return (one for one in scope.between(activation, item) if isinstance(one, Record) and one.outputs)


def _computes(scope: Scope, activation: Activation, item: Item) -> bool:
    """Whether the statement makes a tensor, other than by writing to one."""
    return any(not record.in_place for record in _records(scope, activation, item))


def _takes_part(scope: Scope, activation: Activation, item: Item) -> bool:
    """Whether the statement does nothing but take a part of a tensor that the program writes to, as the filled part
    of a cache. At a run's beginning it is left where it is: the run then reads a tensor of some length, and not the
    number that the length follows from."""
    return all(
        record.target == "Tensor.__getitem__" and len(record.inputs) == 1 and scope.values.is_written(record.inputs[0])
        for record in _records(scope, activation, item)
    )

"""Executions of blocks of statements, read off the tape: one of each iteration of a loop's body."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from mugraph.trace.run.tape import Activation
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import blocks_of


@dataclass(frozen=True)
class Item:
    """One statement of a block as it was executed: steps [first, after) of its activation."""

    statement: ast.stmt
    first: int
    after: int
    children: tuple[Execution, ...] = ()


@dataclass(frozen=True)
class Execution:
    """One execution of a block (of each iteration of a loop's body there is one)."""

    items: tuple[Item, ...]


def execution_of(block: Sequence[ast.stmt], activation: Activation, start: int = 0) -> tuple[Execution, int]:
    """Reads one execution of a block off the activation's steps from `start`; also the step after it."""
    steps = activation.steps
    items: list[Item] = []
    at = start
    for statement in block:
        if at >= len(steps) or steps[at].node != number_of(statement):
            break  # left by return, break, continue or an exception
        first, at = at, at + 1
        heads = {number_of(inner[0]): inner for inner in blocks_of(statement)}
        children: list[Execution] = []
        while at < len(steps) and steps[at].node in heads:
            child, at = execution_of(heads[steps[at].node], activation, at)
            children.append(child)
        items.append(Item(statement, first, at, tuple(children)))
    return Execution(tuple(items)), at
